"""A manager on AWS and its clusters on AWS and on Google Cloud fit together, without a key."""

import copy
import functools
import json

import pytest

from agents.clusters.dispatch import CLUSTER_LABEL
from agents.clusters.workers import Worker, read
from infra import stackspec
from infra.naming import dispatcher_role
from infra.outputs.cluster import WorkerOutputs
from infra.stackspec.document import read as read_file
from infra.stackspec.layouts import LargeLayout
from infra.stackspec.load import CONFIG
from infra.stackspec.several.derived import ClusterMember, digest, workers
from policies.resource import Resource
from stacks.queues import node_pools
from tests.components.graph import Graph
from tests.stacks.composition import google, judged
from tests.stacks.composition.large import MIXED, exported

STACK, CLUSTERS, worker, whole = MIXED.stack, MIXED.clusters, MIXED.worker, MIXED.whole
ACCOUNT = "123456789012"
ROLE = f"arn:aws:sts::{ACCOUNT}:assumed-role/{dispatcher_role(STACK)}"


def graphs() -> dict[str, Graph]:
    return {STACK: whole(), **{f"{STACK}-{one}": worker(one) for one in CLUSTERS}}


def place(cluster: str) -> WorkerOutputs:
    found = MIXED.deployed()[f"{STACK}-{cluster}"]["trainstack"]["worker"]
    return WorkerOutputs.model_validate(found)


def logins() -> dict[str, Worker]:
    program = whole().find("apps/v1:Deployment", "-dispatching-program")
    (container,) = program["spec"]["template"]["spec"]["containers"]
    words = [*container.get("command", ()), *container["args"]]
    return {one.name: one for one in read(words[words.index("--workers") + 1])}


def test_the_manager_has_a_flavor_for_each_pool_of_both_clouds() -> None:
    found = whole().all("kueue.x-k8s.io/v1beta2:ResourceFlavor").values()
    assert {one["metadata"]["name"]: one["spec"]["nodeLabels"][CLUSTER_LABEL] for one in found} == {
        "use1-a100": "use1",
        "use1-l4": "use1",
        "usc1-h100-spot": "usc1",
        "usc1-l4": "usc1",
    }


def test_the_cheaper_pool_is_first_whatever_its_cloud() -> None:
    """Spot machines with one L4 on Google Cloud, before those on demand on AWS."""
    pools = node_pools(stackspec.load_file(STACK).spec)
    spot, on_demand = (pools[name].usd_per_hour for name in ("usc1-l4", "use1-l4"))
    assert spot and on_demand and spot < on_demand
    queue = whole().find("kueue.x-k8s.io/v1beta2:ClusterQueue", "vision")["spec"]
    flavors = [one["name"] for group in queue["resourceGroups"] for one in group["flavors"]]
    assert flavors.index("usc1-l4") < flavors.index("use1-l4")


def test_queues_of_a_name_exist_on_the_manager_and_where_their_jobs_run() -> None:
    def names(graph: Graph) -> set[tuple[str, str]]:
        found = graph.all("kueue.x-k8s.io/v1beta2:LocalQueue").values()
        rows = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in found}
        return {row for row in rows if row[0].startswith("team-")}

    assert names(whole()) == names(worker("use1")) | names(worker("usc1"))


def test_runtimes_of_the_manager_are_of_each_cluster() -> None:
    def runtimes(graph: Graph) -> set[str]:
        found = graph.all("trainer.kubeflow.org/v1alpha1:ClusterTrainingRuntime").values()
        return {one["metadata"]["name"] for one in found}

    assert runtimes(whole()) >= runtimes(worker("use1")) | runtimes(worker("usc1"))


def test_the_dispatcher_logs_in_to_each_worker_as_its_cloud_demands() -> None:
    found = logins()
    assert set(found) == set(CLUSTERS) == set(whole().outputs["connected"])
    own, other = found["use1"], found["usc1"]
    assert (own.cluster, own.role, own.provider) == ("large-mixed-use1", place("use1").role, "")
    assert (other.role, other.provider, other.server) == (
        place("usc1").role,
        place("usc1").provider,
        place("usc1").server,
    )
    # Kueue gets the token of the account, and the STS of the manager's region says who the pod is.
    assert (other.account, other.cluster, other.region) == ("", "", "us-east-1")


def test_the_role_of_the_dispatcher_has_no_permission_for_another_cloud() -> None:
    rights = json.loads(whole().find("iam/rolePolicy:RolePolicy", "-dispatcher-rights")["policy"])
    assert {one for row in rights["Statement"] for one in row["Resource"]} == {place("use1").role}


def test_the_pool_admits_the_role_of_the_dispatcher_alone() -> None:
    made = whole().find("iam/role:Role", "-dispatcher-role")
    provider = worker("usc1").find("iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider")
    assert provider["aws"] == {"accountId": ACCOUNT}
    assert made["name"] == dispatcher_role(STACK)
    assert provider["attributeCondition"] == f"assertion.arn.startsWith('{ROLE}/')"
    uses = worker("usc1").all("serviceaccount/iAMMember:IAMMember")
    ((right, member),) = [
        (one["role"], one["member"]) for name, one in uses.items() if name.endswith("-login-uses")
    ]
    pool = place("usc1").provider.removeprefix("//").rpartition("/providers/")[0]
    assert (right, member) == (
        "roles/iam.workloadIdentityUser",
        f"principalSet://{pool}/attribute.aws_role/{ROLE}",
    )
    for graph in graphs().values():
        assert not graph.all("serviceaccount/key:Key") and not graph.all("iam/accessKey:AccessKey")


def test_the_id_of_the_pool_is_of_one_life_of_the_stack() -> None:
    """A deleted pool keeps its id for 30 days; the number of an account is given once."""
    pool = worker("usc1").find("iam/workloadIdentityPool:WorkloadIdentityPool")
    (account,) = [
        one.state["uniqueId"]
        for one in worker("usc1").registered
        if one.request.type == "gcp:serviceaccount/account:Account" and "-login-" in one.request.name
    ]
    assert pool["workloadIdentityPoolId"] == f"manager-{account}"
    assert 4 <= len(pool["workloadIdentityPoolId"]) <= 32


def test_an_account_of_the_worker_can_connect_and_nothing_else() -> None:
    role = worker("usc1").find("IAMCustomRole", "-login-role")
    assert role["permissions"] == ["container.clusters.connect"]
    granted = [
        one["role"]
        for one in worker("usc1").all("projects/iAMMember:IAMMember").values()
        if one["member"] == f"serviceAccount:{place('usc1').role}"
    ]
    assert [one.rpartition("/")[2] for one in granted] == [role["roleId"]]


def test_apis_of_the_exchange_are_enabled_in_the_project_of_the_worker() -> None:
    on = {one["service"] for one in worker("usc1").all("projects/service:Service").values()}
    assert {"sts.googleapis.com", "iamcredentials.googleapis.com"} <= on


def test_networks_of_two_clouds_are_not_connected() -> None:
    peerings = whole().all("ec2/vpcPeeringConnection:VpcPeeringConnection")
    assert [one["peerVpcId"] for one in peerings.values()] == [place("use1").network]


def test_each_cloud_has_a_budget_and_both_are_the_amount_of_the_spec() -> None:
    spec = stackspec.load_file(STACK).spec
    own, other = whole().find("budgets/budget:Budget"), worker("usc1").find("billing/budget:Budget")
    amounts = float(own["limitAmount"]), float(other["amount"]["specifiedAmount"]["units"])
    assert sum(amounts) == spec.budget.monthly_usd
    assert own["costFilters"][0]["values"] == [
        f"user:trainstack:stack${STACK}",
        f"user:trainstack:stack${STACK}-use1",
    ]
    assert other["budgetFilter"]["labels"] == {"trainstack-stack": f"{STACK}-usc1"}
    assert worker("usc1").outputs["budget"] == other["displayName"]
    assert worker("use1").outputs["budget"] == own["name"] and not worker("use1").all("budgets/budget:Budget")


def test_budgets_of_teams_are_on_the_manager_with_prices_of_both_clouds() -> None:
    program = whole().find("apps/v1:Deployment", "-ledger")
    words = program["spec"]["template"]["spec"]["containers"][0]["args"]
    settings = json.loads(words[words.index("--config") + 1])
    assert settings["budgets"]["team-evaluation"]["usd"] == 20000
    assert set(settings["prices"]) == {"use1-a100", "use1-l4", "usc1-h100-spot", "usc1-l4"}


def test_the_manager_connects_clusters_of_its_own_spec() -> None:
    spec = stackspec.load_file(STACK).spec
    assert isinstance(spec.layout, LargeLayout)
    for cluster in CLUSTERS:
        assert place(cluster).spec == digest(stackspec.load_file(f"{STACK}-{cluster}").spec)


def test_members_of_teams_reach_each_cluster_by_their_names_there() -> None:
    content = read_file(CONFIG / f"Pulumi.{STACK}.yaml", "f")["config"]
    given = {name.removeprefix("trainstack:"): copy.deepcopy(value) for name, value in content.items()}
    arn, group = f"arn:aws:iam::{ACCOUNT}:role/vision", "group:vision@example.com"
    given["spec"]["teams"][1]["members"] = [arn, group]
    spec = stackspec.load(STACK, given, "f").spec
    assert isinstance(spec.layout, LargeLayout)
    states = {}
    for cluster, one in workers(spec, spec.layout).items():
        graph = MIXED.of_member(one, ClusterMember(spec, cluster))
        states[one.name] = exported(graph)
        if cluster == "usc1":
            rights = [one["member"] for one in graph.all("projects/iAMMember:IAMMember").values()]
            assert group in rights and arn not in rights
    entries = MIXED.manager(states, spec).all("eks/accessEntry:AccessEntry").values()
    principals = {one["principalArn"] for one in entries}
    assert arn in principals and group not in principals


def test_nothing_on_google_cloud_is_public() -> None:
    google.nothing_is_public(worker("usc1"), stackspec.load_file(f"{STACK}-usc1").spec)


@functools.cache
def resources(stack: str) -> list[Resource]:
    regions = {STACK: "us-east-1", f"{STACK}-use1": "us-east-1", f"{STACK}-usc1": "us-central1"}
    return judged.resources(graphs()[stack], regions[stack])


@pytest.mark.parametrize("stack", [STACK, *(f"{STACK}-{one}" for one in CLUSTERS)])
def test_every_policy_holds_for_the_manager_and_its_clusters(stack: str) -> None:
    assert judged.reported(judged.verdicts(resources(stack), stack), "fail") == []
