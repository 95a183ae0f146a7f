"""On Google Cloud a manager and its clusters fit together, and one does not remove what another needs."""

import functools
import json
from dataclasses import replace
from typing import Any

import pytest

from agents.clusters.dispatch import CLUSTER_LABEL
from agents.clusters.workers import read
from infra import stackspec
from infra.errors import UserError
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import LargeLayout
from policies.resource import Resource
from tests.components.graph import Graph
from tests.stacks.composition import google, judged
from tests.stacks.composition.large import GOOGLE

STACK, CLUSTERS, worker, whole = GOOGLE.stack, GOOGLE.clusters, GOOGLE.worker, GOOGLE.whole
PROJECT_GRANT = "projects/iAMMember:IAMMember"
DISPATCHER = "example-ml-dev.svc.id.goog/subject/ns/trainstack-dispatch/sa/dispatcher"


def account(cluster: str) -> str:
    return f"large-gcp-{cluster}-manager@ml-train-prod.iam.gserviceaccount.com"


def places() -> dict[str, Any]:
    return {one: GOOGLE.deployed()[f"{STACK}-{one}"]["trainstack"]["worker"] for one in CLUSTERS}


def graphs() -> dict[str, Graph]:
    return {STACK: whole(), **{f"{STACK}-{one}": worker(one) for one in CLUSTERS}}


def test_the_manager_has_a_flavor_for_each_pool_of_each_cluster() -> None:
    found = whole().all("kueue.x-k8s.io/v1beta2:ResourceFlavor").values()
    assert {one["metadata"]["name"]: one["spec"]["nodeLabels"][CLUSTER_LABEL] for one in found} == {
        "usc1-h100": "usc1",
        "usc1-l4": "usc1",
        "use4-h100-spot": "use4",
        "use4-l4": "use4",
    }


def test_queues_of_a_name_exist_on_the_manager_and_where_their_jobs_run() -> None:
    def names(graph: Graph) -> set[tuple[str, str]]:
        found = graph.all("kueue.x-k8s.io/v1beta2:LocalQueue").values()
        rows = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in found}
        return {row for row in rows if row[0].startswith("team-")}

    assert names(whole()) == names(worker("usc1")) | names(worker("use4"))


def test_the_dispatcher_logs_in_to_each_worker_as_an_account_of_that_worker() -> None:
    program = whole().find("apps/v1:Deployment", "-dispatching-program")
    (container,) = program["spec"]["template"]["spec"]["containers"]
    words = [*container.get("command", ()), *container["args"]]
    logins = {one.name: one for one in read(words[words.index("--workers") + 1])}
    assert set(logins) == set(CLUSTERS)
    for cluster, login in logins.items():
        place = places()[cluster]
        assert (login.server, login.role) == (place["server"], account(cluster))
        assert login.server.endswith(".gke.goog") and login.authority == place["authority"] == ""
        # Kueue gets the token of the login, and none is asked of the API server.
        assert (login.account, login.cluster) == ("", "")


def test_an_account_of_a_worker_can_connect_and_nothing_else() -> None:
    for cluster in CLUSTERS:
        role = worker(cluster).find("IAMCustomRole", "-login-role")
        assert role["permissions"] == ["container.clusters.connect"]
        member = f"serviceAccount:{account(cluster)}"
        granted = [
            one["role"] for one in worker(cluster).all(PROJECT_GRANT).values() if one["member"] == member
        ]
        assert [one.rpartition("/")[2] for one in granted] == [role["roleId"]]


def test_only_the_dispatcher_gets_tokens_of_the_account_of_a_worker() -> None:
    for cluster in CLUSTERS:
        uses = worker(cluster).all("serviceaccount/iAMMember:IAMMember")
        ((right, member),) = [
            (one["role"], one["member"]) for name, one in uses.items() if name.endswith("-login-uses")
        ]
        assert right == "roles/iam.workloadIdentityUser" and member.endswith(DISPATCHER)
        assert not worker(cluster).all("serviceaccount/key:Key")


def test_role_bindings_of_a_worker_name_its_own_account_alone() -> None:
    for cluster in CLUSTERS:
        (made,) = [
            one
            for one in worker(cluster).registered
            if one.request.type == "gcp:serviceaccount/account:Account" and "-login-" in one.request.name
        ]
        names = {made.state["email"], made.state["uniqueId"]}
        bound: dict[str, set[str | None]] = {}
        for kind in ("RoleBinding", "ClusterRoleBinding"):
            for one in worker(cluster).all(f"rbac.authorization.k8s.io/v1:{kind}").values():
                if names & {subject["name"] for subject in one["subjects"]}:
                    assert {(subject["kind"], subject["name"]) for subject in one["subjects"]} == {
                        ("User", name) for name in names
                    }
                    bound.setdefault(one["metadata"]["name"], set()).add(one["metadata"].get("namespace"))
        teams = {"team-pretraining", "team-vision", "team-evaluation"}
        assert bound == {
            "trainstack-manager-watches": {None},
            "trainstack-manager-jobs": teams,
            "trainstack-manager-lease": {"trainstack-clusters"},
        }
        roles = worker(cluster).all("rbac.authorization.k8s.io/v1:Role").values()
        assert "manager-tokens" not in {one["metadata"]["name"] for one in roles}


def test_no_two_stacks_have_the_same_grant_on_the_project() -> None:
    """The end of one would remove it for the other."""
    seen: dict[Any, str] = {}
    for stack, graph in graphs().items():
        for one in graph.all(PROJECT_GRANT).values():
            key = (one["role"], one["member"], json.dumps(one.get("condition"), sort_keys=True))
            assert key not in seen, (key, stack, seen[key])
            seen[key] = stack


def test_administrators_and_members_reach_each_cluster_and_the_manager() -> None:
    spec = stackspec.load_file(STACK).spec
    assert isinstance(spec.on, GcpSpec)
    for graph in graphs().values():
        rights = [(one["role"], one["member"]) for one in graph.all(PROJECT_GRANT).values()]
        assert {("roles/container.admin", one) for one in spec.on.admins} <= set(rights)
        for team in spec.teams:
            assert {("roles/container.clusterViewer", one) for one in team.members} <= set(rights)


def test_every_api_server_is_reached_by_its_name_alone() -> None:
    for graph in graphs().values():
        ways = graph.find("container/cluster:Cluster")["controlPlaneEndpointsConfig"]
        assert (
            ways["dnsEndpointConfig"]
            == {"allowExternalTraffic": True, "enableK8sTokensViaDns": False, "enableK8sCertsViaDns": False}
            | ways["dnsEndpointConfig"]
        )
        assert ways["ipEndpointsConfig"]["enabled"] is False
        assert not graph.all("compute/networkPeering:NetworkPeering")


def test_nothing_is_public() -> None:
    for stack, graph in graphs().items():
        google.nothing_is_public(graph, stackspec.load_file(stack).spec)


def test_the_manager_has_no_nodes_for_jobs() -> None:
    pools = whole().all("container/nodePool:NodePool").values()
    assert [one["nodeConfig"]["machineType"] for one in pools] == ["e2-standard-4"]


def test_one_budget_counts_all_stacks_by_a_label_that_all_machines_have() -> None:
    budget = whole().find("billing/budget:Budget")
    assert budget["budgetFilter"]["labels"] == {"trainstack-large": STACK}
    for stack, graph in graphs().items():
        for pool in graph.all("container/nodePool:NodePool").values():
            assert pool["nodeConfig"]["resourceLabels"]["trainstack-large"] == STACK, stack
    for cluster in CLUSTERS:
        assert not worker(cluster).all("billing/budget:Budget")
        assert worker(cluster).outputs["budget"] == budget["displayName"]


def test_ranges_of_networks_do_not_overlap() -> None:
    spec = stackspec.load_file(STACK).spec
    assert isinstance(spec.layout, LargeLayout)
    ranges = [spec.layout.network_cidr, *(one.network_cidr for one in spec.layout.clusters)]
    assert len(set(ranges)) == len(ranges)


def test_a_worker_that_is_not_deployed_is_refused_by_name() -> None:
    states = GOOGLE.deployed()
    del states[f"{STACK}-usc1"]
    with pytest.raises(UserError) as caught:
        GOOGLE.manager(states)
    assert caught.value.codes == (("worker-not-ready", f"stack {STACK}-usc1"),)


@functools.cache
def resources(stack: str) -> list[Resource]:
    regions = {STACK: "us-central1", f"{STACK}-usc1": "us-central1", f"{STACK}-use4": "us-east4"}
    return judged.resources(graphs()[stack], regions[stack])


@pytest.mark.parametrize("stack", [STACK, *(f"{STACK}-{one}" for one in CLUSTERS)])
def test_every_policy_holds_for_the_manager_and_its_clusters(stack: str) -> None:
    assert judged.reported(judged.verdicts(resources(stack), stack), "fail") == []


def test_a_budget_that_does_not_count_the_clusters_is_a_violation() -> None:
    found = json.dumps([dict(one.props) for one in resources(STACK) if "billing/budget" in one.kind])
    (props,) = json.loads(found.replace("trainstack-large", "trainstack-stack"))
    less = [replace(one, props=props) if "billing/budget" in one.kind else one for one in resources(STACK)]
    failed = judged.reported(judged.verdicts(less, STACK), "fail")
    assert "MLS-COST-01" in {line.split()[0] for line in failed}
