"""A manager and its clusters fit together, by construction from one spec."""

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agents.clusters.dispatch import CLUSTER_LABEL
from agents.clusters.workers import read
from infra import stackspec
from infra.errors import UserError
from infra.outputs.cluster import WorkerOutputs
from infra.outputs.manager import ManagerOutputs
from infra.stackspec.layouts import LargeLayout
from infra.stackspec.several.derived import ClusterMember, digest, of_stack, workers
from policies.resource import Resource
from policies.rules import CATALOG
from stacks.queues import node_pools
from tests.components.graph import Graph
from tests.policies.mutants.mutation import fates
from tests.stacks.composition import judged
from tests.stacks.composition.large import (
    CLUSTERS,
    STACK,
    deployed,
    exported,
    manager,
    of_member,
    whole,
    worker,
)
from trainstack.preflight.aws import permissions


def kueue(kind: str) -> dict[str, Any]:
    """The specs of the manager's objects of a kind of Kueue, by name."""
    found = whole().all(f"kueue.x-k8s.io/v1beta2:{kind}").values()
    return {one["metadata"]["name"]: one.get("spec") for one in found}


def test_the_manager_has_a_flavor_for_each_pool_of_each_cluster() -> None:
    labels = {name: spec["nodeLabels"] for name, spec in kueue("ResourceFlavor").items()}
    assert labels == {
        f"{cluster}-{pool}": {"trainstack.dev/pool": f"{cluster}-{pool}", CLUSTER_LABEL: cluster}
        for cluster, pool in (("usw2", "h100"), ("usw2", "l4"), ("use1", "a100"), ("use1", "l4"))
    }


@pytest.mark.parametrize("graph", [functools.partial(worker, "usw2"), whole], ids=["worker", "manager"])
def test_the_deployer_is_allowed_every_type_that_is_made(graph: Callable[[], Graph]) -> None:
    """Preflight checks, and bootstrap prints, the rights of the types in the table alone."""
    spec = of_stack(stackspec.load_file(STACK if graph is whole else f"{STACK}-usw2").spec)
    made = {one.request.type for one in graph().registered}
    assert {one for one in made if one.startswith("aws:")} <= {*permissions.rows(spec)}


def test_a_flavor_of_the_manager_selects_nodes_of_the_worker() -> None:
    for cluster in CLUSTERS:
        for group in worker(cluster).all("eks/nodeGroup:NodeGroup").values():
            flavor = kueue("ResourceFlavor").get(group["labels"]["trainstack.dev/pool"])
            if flavor:  # the system pool has none
                labels = flavor["nodeLabels"]
                assert labels.items() <= group["labels"].items()


def test_queues_of_a_name_exist_on_the_manager_and_where_their_jobs_run() -> None:
    def names(graph: Any) -> set[tuple[str, str]]:
        found = graph.all("kueue.x-k8s.io/v1beta2:LocalQueue").values()
        rows = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in found}
        return {row for row in rows if row[0].startswith("team-")}

    everywhere = names(worker("usw2")) | names(worker("use1"))
    assert names(whole()) == everywhere


def test_runtimes_of_the_manager_are_those_of_its_clusters() -> None:
    def runtimes(graph: Any) -> dict[str, Any]:
        found = graph.all("trainer.kubeflow.org/v1alpha1:ClusterTrainingRuntime").values()
        return {one["metadata"]["name"]: one["spec"] for one in found}

    own = runtimes(whole())
    assert own
    for cluster in CLUSTERS:
        assert {name: own[name] for name in runtimes(worker(cluster))} == runtimes(worker(cluster))


def test_the_worker_trusts_the_role_that_the_manager_makes_and_no_other() -> None:
    role = whole().find("iam/role:Role", "-dispatcher-role")
    for cluster in CLUSTERS:
        login = worker(cluster).find("iam/role:Role", "-login-role")
        (statement,) = json.loads(login["assumeRolePolicy"])["Statement"]
        assert statement["Principal"] == {"AWS": "arn:aws:iam::123456789012:root"}
        assert statement["Condition"] == {
            "ArnEquals": {"aws:PrincipalArn": f"arn:aws:iam::123456789012:role/{role['name']}"}
        }


def test_the_dispatcher_may_assume_the_roles_of_workers_and_nothing_else() -> None:
    policy = json.loads(whole().find("iam/rolePolicy:RolePolicy", "-dispatcher-rights")["policy"])
    (statement,) = policy["Statement"]
    roles = {states["trainstack"]["worker"]["role"] for states in deployed().values()}
    assert set(statement["Resource"]) == roles and len(roles) == 2
    assert set(statement["Action"]) == {"sts:AssumeRole", "sts:TagSession"}


def test_the_login_of_a_worker_may_request_tokens_of_the_managers_account_alone() -> None:
    for cluster in CLUSTERS:
        (entry,) = [
            one
            for one in worker(cluster).all("eks/accessEntry:AccessEntry").values()
            if one.get("kubernetesGroups") == ["trainstack:manager"]
        ]
        assert "accessPolicies" not in entry
        bound = [
            one
            for kind in ("RoleBinding", "ClusterRoleBinding")
            for one in worker(cluster).all(f"rbac.authorization.k8s.io/v1:{kind}").values()
            if any(subject["name"] == "trainstack:manager" for subject in one["subjects"])
        ]
        assert [one["metadata"]["name"] for one in bound] == ["manager-tokens"]


def _alerts(graph: Any) -> set[str]:
    """Names of the alerts of a stack."""
    found = graph.all("monitoring.coreos.com/v1:PrometheusRule").values()
    rules = [rule for one in found for group in one["spec"]["groups"] for rule in group["rules"]]
    return {rule["alert"] for rule in rules if "alert" in rule}


def test_alerts_of_teams_come_from_the_manager_alone_and_none_about_what_it_does_not_have() -> None:
    teams = {"QueueWaitAboveTarget", "QueueWaitAboveTwoHours", "HighPriorityWaitAboveTarget"}
    teams |= {"JobFailureRateHigh", "CostSpike"}
    assert teams | {"ClusterLost", "DispatcherDown", "KueueDown"} <= _alerts(whole())
    assert "MlflowDown" not in _alerts(whole())
    for cluster in CLUSTERS:
        found = _alerts(worker(cluster))
        assert not found & teams and {"MlflowDown", "KueueDown", "GpuLost", "GpuXidError"} <= found


def test_the_manager_has_one_view_of_all_clusters_and_reads_its_dispatcher() -> None:
    def dashboards(graph: Any) -> set[str]:
        found = graph.all("ConfigMap").values()
        return {one["metadata"]["name"] for one in found if "grafana_dashboard" in str(one["metadata"])}

    assert "dashboard-clusters" in dashboards(whole())
    assert not any("dashboard-clusters" in dashboards(worker(cluster)) for cluster in CLUSTERS)
    program = whole().find("apps/v1:Deployment", "-dispatching-program")
    monitor = whole().find("monitoring.coreos.com/v1:PodMonitor", "-programs")
    assert program["metadata"]["namespace"] in monitor["spec"]["namespaceSelector"]["matchNames"]
    assert monitor["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/part-of": "trainstack"}


def test_a_worker_ends_the_jobs_of_a_manager_that_is_away() -> None:
    for cluster in CLUSTERS:
        graph = worker(cluster)
        assert graph.find("apps/v1:Deployment", "-fencing-program")
        bindings = graph.all("rbac.authorization.k8s.io/v1:RoleBinding").values()
        bound = {
            (one["roleRef"]["name"], one["metadata"]["namespace"], one["subjects"][0]["name"])
            for one in bindings
        }
        # The manager's account writes the Lease, of which the fence reads the age.
        assert ("trainstack-manager-lease", "trainstack-clusters", "manager") in bound
        assert ("trainstack-fence-lease", "trainstack-clusters", "fence") in bound
        ends = {namespace for role, namespace, _ in bound if role == "trainstack-fence-jobs"}
        assert ends == {"team-pretraining", "team-vision", "team-evaluation"}


def test_the_dispatcher_logs_in_to_each_worker_as_its_role() -> None:
    program = whole().find("apps/v1:Deployment", "-dispatching-program")
    (container,) = program["spec"]["template"]["spec"]["containers"]
    words = [*container.get("command", ()), *container["args"]]
    logins = {one.name: one for one in read(words[words.index("--workers") + 1])}
    for cluster in CLUSTERS:
        place = WorkerOutputs.model_validate(deployed()[f"{STACK}-{cluster}"]["trainstack"]["worker"])
        assert (logins[cluster].server, logins[cluster].role) == (place.server, place.role)


def test_networks_of_all_workers_are_connected_in_both_directions() -> None:
    routes = whole().all("ec2/route:Route")
    spec = stackspec.load_file(STACK).spec
    assert isinstance(spec.layout, LargeLayout)
    for one in spec.layout.clusters:
        to = {
            row.get("region"): row["destinationCidrBlock"] for name, row in routes.items() if one.name in name
        }
        assert to == {None: one.network_cidr, one.region: spec.layout.network_cidr}


def test_workers_let_in_the_managers_network() -> None:
    for cluster in CLUSTERS:
        rule = worker(cluster).find("vpc/securityGroupIngressRule:SecurityGroupIngressRule", "-login-api")
        assert (rule["cidrIpv4"], rule["fromPort"], rule["toPort"]) == ("10.0.0.0/16", 443, 443)


def test_no_api_server_of_a_worker_is_on_the_internet() -> None:
    """Its name would resolve to a public address, from which the manager's network is not known."""
    for cluster in CLUSTERS:
        network = worker(cluster).find("eks/cluster:Cluster")["vpcConfig"]
        assert network["endpointPrivateAccess"] and not network["endpointPublicAccess"]
    assert whole().find("eks/cluster:Cluster")["vpcConfig"]["endpointPublicAccess"]


def test_a_cluster_that_is_open_for_its_first_deployment_gets_no_jobs() -> None:
    spec = stackspec.load_file(STACK).spec
    assert isinstance(spec.layout, LargeLayout)
    office = ("198.51.100.0/24",)
    first, *others = spec.layout.clusters
    clusters = (first.model_copy(update={"api_access": office}), *others)
    layout = spec.layout.model_copy(update={"clusters": clusters})
    opened = spec.model_copy(update={"layout": layout})
    own = workers(opened, layout)[first.name]
    graph = of_member(own, ClusterMember(opened, first.name))
    network = graph.find("eks/cluster:Cluster")["vpcConfig"]
    assert network["endpointPublicAccess"] and network["publicAccessCidrs"] == list(office)
    found = manager({**deployed(), own.name: exported(graph)}, opened)
    assert found.outputs["connected"] == ["use1"]
    assert ManagerOutputs.model_validate(found.outputs).away == ("usw2",)
    # A machine in the manager's network reaches it once it is closed.
    assert found.all("ec2/route:Route").keys() == whole().all("ec2/route:Route").keys()


def test_the_manager_has_no_nodes_for_jobs() -> None:
    groups = whole().all("eks/nodeGroup:NodeGroup").values()
    assert [one["instanceTypes"] for one in groups] == [["m6i.xlarge"]]


def test_one_budget_counts_all_stacks() -> None:
    budget = whole().find("budgets/budget:Budget")
    (cost,) = budget["costFilters"]
    assert cost["values"] == [f"user:trainstack:stack${name}" for name in (STACK, *deployed())]
    for cluster in CLUSTERS:
        assert not worker(cluster).all("budgets/budget:Budget")
        assert worker(cluster).outputs["budget"] == budget["name"]


def test_budgets_of_teams_are_checked_by_the_manager_alone() -> None:
    def config(graph: Any) -> Any:
        spec = graph.find("apps/v1:Deployment", "-ledger")["spec"]["template"]["spec"]
        words = spec["containers"][0]["args"]
        return json.loads(words[words.index("--config") + 1])["budgets"]

    assert config(whole())["team-evaluation"]["usd"] == 20000
    assert config(worker("usw2")) == config(worker("use1")) == {}


def test_the_digest_of_a_worker_is_that_which_the_manager_expects() -> None:
    spec = stackspec.load_file(STACK).spec
    assert isinstance(spec.layout, LargeLayout)
    expected = {name: digest(one) for name, one in workers(spec, spec.layout).items()}
    assert expected == {name: digest(stackspec.load_file(f"{STACK}-{name}").spec) for name in CLUSTERS}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"spec": "of-another-day"}, "worker-of-another-spec"),
        ({"contract": 0}, "worker-not-ready"),
        (None, "worker-not-ready"),
    ],
    ids=["another spec", "another version", "not deployed"],
)
def test_a_worker_that_does_not_fit_is_refused_by_name(change: Any, code: str) -> None:
    states = json.loads(json.dumps(deployed()))
    if change is None:
        del states[f"{STACK}-usw2"]
    else:
        states[f"{STACK}-usw2"]["trainstack"]["worker"].update(change)
    with pytest.raises(UserError) as caught:
        manager(states)
    assert caught.value.codes == ((code, f"stack {STACK}-usw2"),)


def test_prices_of_flavors_are_those_of_the_workers_regions() -> None:
    pools = node_pools(stackspec.load_file(f"{STACK}-usw2").spec)
    assert pools["usw2-l4"].flavor["usd_per_hour"] > 0
    assert pools["usw2-h100"].flavor["usd_per_hour"] == 0  # paid, used or not: it comes first


STACKS = {STACK: "us-east-1", f"{STACK}-usw2": "us-west-2", f"{STACK}-use1": "us-east-1"}
# What no composition knows, by rule; a deployed stack knows the second.
OPEN = {
    STACK: set[str](),
    f"{STACK}-usw2": {"MLS-REP-04"},
    f"{STACK}-use1": {"MLS-REP-04"},
}
MONEY = ("MLS-COST-01", "MLS-COST-03", "MLS-COST-04", "MLS-COST-09", "MLS-GPU-04")


@functools.cache
def resources(stack: str) -> list[Resource]:
    graph = whole() if stack == STACK else worker(stack.rpartition("-")[2])
    return judged.resources(graph, STACKS[stack])


@pytest.mark.parametrize("stack", STACKS)
def test_every_policy_holds_for_the_manager_and_its_clusters(stack: str) -> None:
    outcomes = judged.verdicts(resources(stack), stack)
    assert judged.reported(outcomes, "fail") == []
    assert {one.rule.id for one in outcomes if one.result == "undetermined"} == OPEN[stack]


def test_budgets_of_clusters_are_judged_with_their_manager() -> None:
    for stack in STACKS:
        results = {one.rule.id: one.result for one in judged.verdicts(resources(stack), stack)}
        expected = "pass" if stack == STACK else "not-applicable"
        assert results["MLS-COST-01"] == results["MLS-COST-04"] == expected


def test_a_budget_that_counts_one_cluster_less_is_a_violation() -> None:
    for stack in list(STACKS)[1:]:
        found = json.dumps([dict(one.props) for one in resources(STACK) if "budgets/budget" in one.kind])
        (props,) = json.loads(found.replace(f"$large-aws-{stack.rpartition('-')[2]}", "$another"))
        less = [
            replace(one, props=props) if "budgets/budget" in one.kind else one for one in resources(STACK)
        ]
        failed = judged.reported(judged.verdicts(less, STACK), "fail")
        assert [(line.split()[0], stack in line) for line in failed] == [("MLS-COST-01", True)]


_TARGET = "capacityReservationSpecification.capacityReservationTarget"
_TEMPLATE, _BUDGET = "aws:ec2/launchTemplate:LaunchTemplate", "aws:budgets/budget:Budget"
DETECTED = {
    STACK: {
        f"{_BUDGET} removed",
        f"{_BUDGET} budgetType dropped",
        f"{_BUDGET} notifications.#.subscriberEmailAddresses dropped",
    },
    f"{STACK}-usw2": {
        f"{_TEMPLATE} {_TARGET}.capacityReservationId dropped",
        f"{_TEMPLATE} instanceMarketOptions.marketType dropped",
        f"{_TEMPLATE} tagSpecifications.#.tags emptied",
        "aws:eks/nodeGroup:NodeGroup capacityType dropped",
    },
}


@pytest.mark.parametrize("stack", DETECTED)
def test_mutants_of_budgets_and_of_the_block_are_detected(stack: str) -> None:
    rules = {name: CATALOG.rules[name] for name in MONEY}
    found = fates(resources(stack), rules, judged.settings(stack))
    assert set(found.reported) >= DETECTED[stack]
