import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pulumi
import pytest

from components.kubernetes.network_policies import PlatformNetwork
from components.kubernetes.people import user
from components.kubernetes.queueing import exposure, given, kueue_fields, kueue_values, node_access
from components.kubernetes.queueing.queues import Queueing, QueueingArgs
from components.kubernetes.queueing.quotas import FlavorArgs
from components.kubernetes.queueing.tenancy import GIVEN, GIVEN_LABEL
from infra.errors import UserError
from infra.launchers.fabrics import PodNeeds
from infra.launchers.gcp import gke
from infra.quantity import parse
from tests.components.graph import Graph, deploy_graph
from tests.components.kubernetes.queueing.pools import ADAPTERS, GATE, cpu_flavor, fabric, gpu_flavor, teams

IMAGE = "registry.example/mlflow@sha256:11"


def args() -> QueueingArgs:
    return {
        "flavors": [cpu_flavor(), {**gpu_flavor(), "topology": ["rack"], "fixed_size": True}],
        "teams": teams(research=3, product=1),
        "gate": GATE,
        "ready_image": IMAGE,
        "control_plane": PlatformNetwork("eks", ["10.0.0.0/16"]),
    }


def test_members_without_a_group_are_bound_and_policed_by_name() -> None:
    by_name: QueueingArgs = {**args(), "teams": [{**args()["teams"][0], "people": [user("ada@example.com")]}]}
    made = queueing(by_name)
    bound = {
        (one["kind"], one["name"]) for row in made.all("RoleBinding").values() for one in row["subjects"]
    }
    assert ("User", "ada@example.com") in bound
    assert not [name for kind, name in bound if kind == "Group" and name.startswith("trainstack:team:")]
    asked = {
        row["metadata"]["name"]
        for row in made.all("ValidatingAdmissionPolicy").values()
        if "ada@example.com" in str(row["spec"].get("matchConditions"))
    }
    assert asked >= {given.GIVEN, kueue_fields.FIELDS, exposure.SERVICES, exposure.NETWORK}


def queueing(given: QueueingArgs) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = Queueing("dev-queueing", given)
        return {
            "namespaces": made.team_namespaces,
            "gate_namespace": made.gate_namespace,
            "gate_queues": pulumi.Output.from_input(made.gate_queues),
            "gate_priority": made.gate_priority,
            "cohort": made.cohort,
        }

    return deploy_graph(program)


@pytest.fixture(scope="module")
def made() -> Graph:
    return queueing(args())


def test_kueue_is_the_pinned_oci_chart_in_a_namespace_of_its_own(made: Graph) -> None:
    release = made.find("Release", "-kueue")
    assert release["chart"] == "oci://registry.k8s.io/kueue/charts/kueue"
    assert release["version"] == "0.19.2"
    assert "repositoryOpts" not in release
    assert release["name"] == "kueue"
    assert release["namespace"] == "kueue-system"
    assert release["atomic"] is True
    assert release["values"]["enablePrometheus"] is False
    assert made.find("Namespace", "kueue-namespace")["metadata"]["name"] == "kueue-system"
    assert "Namespace:dev-queueing-kueue-namespace" in made.edges["Release:dev-queueing-kueue"]


def test_every_team_gets_a_namespace_that_is_queued_tracked_and_closed(made: Graph) -> None:
    labels = made.find("Namespace", "team-research-namespace")["metadata"]["labels"]
    assert labels == {
        "trainstack.dev/queueing": "required",
        "trainstack.dev/tracking": "allowed",
        "trainstack.dev/team": "team-research",
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/warn": "restricted",
    }
    assert set(made.all("Namespace")) == {
        "dev-queueing-kueue-namespace",
        "dev-queueing-smoke-namespace",
        "dev-queueing-team-research-namespace",
        "dev-queueing-team-product-namespace",
    }
    policy = made.find("NetworkPolicy", "team-research-ingress")
    assert policy["metadata"]["namespace"] == "team-research"
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {}}]}]
    limits = made.find("LimitRange", "team-research-requests")["spec"]["limits"]
    assert limits == [
        {"type": "Container", "defaultRequest": {"cpu": "1", "memory": "2Gi"}},
        {"type": "Pod", "min": {"cpu": "100m"}},
    ]


def test_the_members_of_a_team_work_in_its_namespace_and_in_no_other(made: Graph) -> None:
    bindings = {
        (row["metadata"]["namespace"], row["roleRef"]["name"], subject["name"])
        for row in made.all("RoleBinding").values()
        for subject in row["subjects"]
    }
    assert bindings == {
        (f"team-{team}", role, f"trainstack:team:{team}")
        for team in ("research", "product")
        for role in ("edit", "kueue-batch-user-role")
    }


def test_priority_classes_keep_their_value_at_the_top_level(made: Graph) -> None:
    validation = made.find("WorkloadPriorityClass", "-validation")
    assert validation["value"] == -20
    assert validation["apiVersion"] == "kueue.x-k8s.io/v1beta2"


def test_objects_come_after_what_they_refer_to_and_go_before_it(made: Graph) -> None:
    queue = "dev-queueing-localqueue-team-research-default"
    assert made.all("LocalQueue")[queue]["spec"] == {"clusterQueue": "team-research"}
    assert {
        "ClusterQueue:dev-queueing-clusterqueue-team-research",
        "Cohort:dev-queueing-cohort-trainstack",
        "ResourceFlavor:dev-queueing-resourceflavor-a100",
        "Release:dev-queueing-kueue",
        "Namespace:dev-queueing-team-research-namespace",
        "Namespace:dev-queueing-kueue-namespace",
    } <= made.waits_for(f"LocalQueue:{queue}")
    (topology,) = made.all("Topology")
    assert f"Topology:{topology}" in made.waits_for("ResourceFlavor:dev-queueing-resourceflavor-a100")


def test_nothing_of_the_kinds_of_kueue_is_made_before_its_webhooks_answer(made: Graph) -> None:
    custom = [asked for asked in made.cloud.asked if "kueue.x-k8s.io" in asked.type]
    assert {asked.type.rpartition(":")[2] for asked in custom} == {
        "Topology", "WorkloadPriorityClass", "ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue",
    }  # fmt: skip
    for asked in custom:
        kind = asked.type.rpartition(":")[2]
        assert "Job:dev-queueing-kueue-ready" in made.waits_for(f"{kind}:{asked.name}")
    assert {
        "Release:dev-queueing-kueue", "ClusterRoleBinding:dev-queueing-kueue-ready-binding",
        "ConfigMap:dev-queueing-kueue-ready-program",
    } <= made.waits_for("Job:dev-queueing-kueue-ready")  # fmt: skip


def test_what_is_asked_is_what_becomes_of_the_first_flavor(made: Graph) -> None:
    job = made.find("Job", "kueue-ready")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    given = dict(zip(container["args"][::2], container["args"][1::2], strict=True))
    flavor = made.find("ResourceFlavor", "-cpu")
    assert json.loads(given["--object"]) == {**flavor, "kind": "ResourceFlavor"}
    assert given["--path"] == "/apis/kueue.x-k8s.io/v1beta2/resourceflavors"
    assert container["image"] == IMAGE


def test_the_pod_that_asks_is_in_no_queue_and_may_do_nothing_else(made: Graph) -> None:
    job = made.find("Job", "kueue-ready")
    assert job["metadata"]["namespace"] == "kueue-system"
    assert "trainstack.dev/queueing" not in made.find("Namespace", "kueue-namespace")["metadata"]["labels"]
    assert made.find("ClusterRole", "kueue-ready-role")["rules"] == [
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["resourceflavors"], "verbs": ["create"]}
    ]
    pod = job["spec"]["template"]["spec"]
    assert (
        pod["serviceAccountName"]
        == made.find("ServiceAccount", "ready-account")["metadata"]["name"]
        == "kueue-ready"
    )
    assert pod["automountServiceAccountToken"] is False


def test_the_job_stays_ends_by_itself_and_is_another_one_for_another_release(made: Graph) -> None:
    job = made.find("Job", "kueue-ready")
    assert (job["spec"]["backoffLimit"], job["spec"]["activeDeadlineSeconds"]) == (0, 600)
    assert "ttlSecondsAfterFinished" not in job["spec"]
    assert job["metadata"]["annotations"] == {"pulumi.com/replaceUnready": "true"}
    name = job["metadata"]["name"]
    assert queueing(args()).find("Job", "kueue-ready")["metadata"]["name"] == name
    claimed: FlavorArgs = {**gpu_flavor(), "fabric": {**fabric(4), "device_class": "adapters.example.com"}}
    other = queueing({**args(), "flavors": [claimed]}).find("Job", "kueue-ready")
    assert other["metadata"]["name"] != name


def test_outputs_name_what_jobs_need(made: Graph) -> None:
    assert made.outputs == {
        "namespaces": {"research": "team-research", "product": "team-product"},
        "gate_namespace": "trainstack-smoke",
        "gate_queues": {"a100": "smoke--a100"},
        "gate_priority": "validation",
        "cohort": "trainstack",
    }


def test_claims_reach_the_controller() -> None:
    claimed: FlavorArgs = {**gpu_flavor(), "fabric": {**fabric(4), "device_class": "adapters.example.com"}}
    given: QueueingArgs = {**args(), "flavors": [claimed]}
    values = queueing(given).find("Release", "-kueue")["values"]
    config = json.loads(values["managerConfig"]["controllerManagerConfigYaml"])
    assert values["enablePrometheus"] is False, "its kind may not be there, or not yet"
    assert config["resources"]["deviceClassMappings"] == [
        {"name": ADAPTERS, "deviceClassNames": ["adapters.example.com"]}
    ]


def test_every_team_has_the_template_of_a_claim_and_cannot_change_it() -> None:
    claimed: FlavorArgs = {**gpu_flavor(), "fabric": {**fabric(4), "device_class": "adapters.example.com"}}
    graph = queueing({**args(), "flavors": [claimed]})
    found = graph.all("ResourceClaimTemplate")
    spaces = {body["metadata"]["namespace"]: body for body in found.values()}
    assert set(spaces) == {"team-research", "team-product"}
    for namespace, body in spaces.items():
        assert body["metadata"]["labels"] == {"trainstack.dev/given": "yes"}
        (request,) = body["spec"]["spec"]["devices"]["requests"]
        assert request["exactly"] == {
            "deviceClassName": "adapters.example.com",
            "allocationMode": "ExactCount",
            "count": 4,
        }
        assert body["metadata"]["name"] == f"torch-{claimed['name']}", namespace
    assert queueing(args()).all("ResourceClaimTemplate") == {}


def test_shares_that_do_not_fit_create_nothing() -> None:
    given: QueueingArgs = {**args(), "gate": {"nodes": {"a100": 99}}}
    made: list[Graph] = []
    with pytest.raises(UserError):
        made.append(queueing(given))
    assert not made


def test_a_job_without_a_queue_is_refused_where_jobs_are_queued(made: Graph) -> None:
    spec = made.find("ValidatingAdmissionPolicy", "trainstack-queued")["spec"]
    assert spec["matchConstraints"]["namespaceSelector"] == {
        "matchLabels": {"trainstack.dev/queueing": "required"}
    }
    queued = [row["resources"] for row in spec["matchConstraints"]["resourceRules"]]
    assert queued == [["pods"], ["jobs"], ["jobsets"], ["trainjobs"]]
    for binding in made.all("ValidatingAdmissionPolicyBinding").values():
        assert binding["spec"]["validationActions"] == ["Deny"]


def test_no_pod_of_a_team_has_a_priority_of_the_system(made: Graph) -> None:
    quota = made.find("ResourceQuota", "team-research-priorities")["spec"]
    assert quota["hard"] == {"pods": "0"}
    (scope,) = quota["scopeSelector"]["matchExpressions"]
    assert (scope["scopeName"], scope["operator"]) == ("PriorityClass", "In")
    assert scope["values"] == ["system-cluster-critical", "system-node-critical"]


def test_no_address_of_a_team_is_public_and_its_objects_are_counted(made: Graph) -> None:
    quota = made.find("ResourceQuota", "team-research-objects")["spec"]["hard"]
    assert quota["services.loadbalancers"] == quota["services.nodeports"] == "0"
    # A quota refuses a kind of a chart until its controller has found it.
    assert not [key for key in quota if "x-k8s.io" in key or "kubeflow" in key]
    assert made.find("NetworkPolicy", "team-research-ingress")["metadata"]["labels"] == {GIVEN_LABEL: GIVEN}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7])
def test_what_four_teams_may_keep_fits_the_memory_of_kueue(count: int) -> None:
    graph = queueing({**args(), "teams": teams(**{f"t{number}": 1 for number in range(count)})})
    quota = graph.find("ResourceQuota", "team-t0-objects")["spec"]["hard"]
    jobs, pods = int(parse(quota["count/jobs.batch"])), int(parse(quota["pods"]))
    assert jobs >= 5_000 and pods >= 5_000
    # Kubernetes keeps as many in the whole cluster (pkg/controller/podgc/config/v1alpha1/defaults.go).
    ended = 12_500
    limit = parse(
        kueue_values.values(claimed={})["controllerManager"]["manager"]["resources"]["limits"]["memory"]
    )
    # While they are deleted: 1.6 GiB for 10,000 jobs of one pod. The pod is taken for half of it.
    half = Decimal("1.6") * 2**30 / 10_000 / 2
    assert half * (min(count, 4) * (jobs + pods) + ended) <= limit


def test_only_where_a_fabric_needs_folders_of_its_node_a_policy_takes_the_standard_s_place() -> None:
    """What the policy says, an API server is asked (tests/cluster/tenancy/test_node_access.py)."""
    own = {node_access.NAME, node_access.SHELLS}
    cases: list[tuple[PodNeeds, str, set[str]]] = [
        (gke.gib(), "baseline", set()),
        (gke.tcpxo(["net"] * 8), "privileged", own),
    ]
    for needs, level, expected in cases:
        graph = queueing({**args(), "flavors": [cpu_flavor(), {**gpu_flavor(), "pod": needs}]})
        for space in ("dev-queueing-smoke-namespace", "dev-queueing-team-research-namespace"):
            labels = graph.all("Namespace")[space]["metadata"]["labels"]
            assert labels["pod-security.kubernetes.io/enforce"] == level
            before = {name for name in graph.waits_for(f"Namespace:{space}") if "trainstack-node" in name}
            assert bool(before) is bool(expected)
            assert {
                f"ValidatingAdmissionPolicyBinding:dev-queueing-validatingadmissionpolicybinding-{policy}"
                for policy in (kueue_fields.FIELDS, given.GIVEN, exposure.NETWORK)
            } <= graph.waits_for(f"Namespace:{space}")
        made = {body["metadata"]["name"] for body in graph.all("ValidatingAdmissionPolicy").values()}
        assert made & own == expected
