"""JobSet, Kubeflow Trainer, and the runtimes that TrainJobs name."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.aws.pools.offers import node_offer
from components.kubernetes.network_policies import PlatformNetwork
from components.kubernetes.offers import NodeOffer
from components.kubernetes.training.trainer import Trainer, TrainerArgs, runtimes
from infra.catalog.aws import facts
from tests.components.graph import Graph, deploy_graph

IMAGE = "example.com/train@sha256:" + "0" * 64
P4D = facts.instance_type("p4d.24xlarge")


@pytest.fixture(scope="module")
def made() -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        pools = {"a100": node_offer(P4D, "device_plugin")}
        args: TrainerArgs = {
            "pools": pools,
            "image": IMAGE,
            "ready_image": IMAGE,
            "control_plane": PlatformNetwork("eks", ["10.0.0.0/16"]),
        }
        trainer = Trainer("dev-trainer", args)
        return {"runtimes": trainer.runtimes}

    return deploy_graph(program)


def test_trainer_comes_after_jobset_and_brings_none_of_its_own_and_no_runtime(made: Graph) -> None:
    release = made.find("Release", "-kubeflow-trainer")
    assert "Release:dev-trainer-jobset" in made.edges["Release:dev-trainer-kubeflow-trainer"]
    assert (release["name"], release["namespace"]) == ("kubeflow-trainer", "kubeflow-system")
    assert release["values"]["jobset"] == {"install": False}
    assert "runtimes" not in release["values"]


def test_definitions_of_a_chart_are_installed_before_its_release_which_leaves_them_out(made: Graph) -> None:
    for chart in ("jobset", "kubeflow-trainer"):
        assert made.find("Release", f"-{chart}")["skipCrds"] is True
        assert f"Job:dev-trainer-{chart}-definitions" in made.waits_for(f"Release:dev-trainer-{chart}")
        config = made.find("ConfigMap", f"-{chart}-definitions-program")
        # An API server accepts 1 MiB; the engine's state has it twice.
        assert sum(map(len, [*config["data"].values(), *config["binaryData"].values()])) < 150_000


def test_who_installs_definitions_changes_those_of_its_chart_alone(made: Graph) -> None:
    rules = made.find("ClusterRole", "-jobset-definitions-role")["rules"]
    changing = [rule for rule in rules if set(rule["verbs"]) - {"get", "create"}]
    assert [rule["resourceNames"] for rule in changing] == [["jobsets.jobset.x-k8s.io"]]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "create", "update"}


def test_no_runtime_is_made_before_the_webhook_of_its_kind_answers(made: Graph) -> None:
    assert made.outputs["runtimes"] == ["torch-distributed", "torch-a100"]
    for runtime in made.outputs["runtimes"]:
        waits = made.waits_for(f"ClusterTrainingRuntime:dev-trainer-{runtime}")
        assert {"Job:dev-trainer-ready", "Release:dev-trainer-kubeflow-trainer"} <= waits
    assert made.find("ClusterRole", "trainer-ready-role")["rules"] == [
        {"apiGroups": ["trainer.kubeflow.org"], "resources": ["clustertrainingruntimes"], "verbs": ["create"]}
    ]


def test_the_runtime_of_a_pool_takes_its_nodes_whole(made: Graph) -> None:
    (job,) = made.find("ClusterTrainingRuntime", "torch-a100")["spec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == IMAGE
    limits = container["resources"]["limits"]
    assert (limits["nvidia.com/gpu"], limits["vpc.amazonaws.com/efa"], limits["hugepages-2Mi"]) == (
        "8", "4", "5120Mi",
    )  # fmt: skip
    memory, own = pod["volumes"]
    assert memory["emptyDir"]["medium"] == "Memory"
    # Its own name and a token: a run says itself when it wrote a checkpoint.
    assert own["name"] == "trainstack-pod"
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    (match,) = term["matchExpressions"]
    assert match == {"key": "trainstack.dev/pool", "operator": "In", "values": ["a100"]}


def test_a_pool_whose_gpus_are_shared_has_no_runtime() -> None:
    shared: NodeOffer = {**node_offer(P4D, "device_plugin"), "shared": True}
    assert [each["metadata"]["name"] for each in runtimes({"a100": shared}, IMAGE)] == ["torch-distributed"]


def test_the_runtime_of_a_pool_whose_devices_are_claimed_claims_those_of_a_node() -> None:
    _, body = runtimes({"a100": node_offer(P4D, "dra")}, IMAGE)
    (job,) = body["spec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    assert pod["resourceClaims"] == [{"name": "efa", "resourceClaimTemplateName": "torch-a100"}]
    (container,) = pod["containers"]
    assert container["resources"]["claims"] == [{"name": "efa"}]
    assert "vpc.amazonaws.com/efa" not in container["resources"]["limits"]


def test_pools_of_one_machine_type_have_a_runtime_together_where_a_pod_runs_on_all() -> None:
    a100, other = node_offer(P4D, "device_plugin"), node_offer(P4D, "dra")
    smaller: NodeOffer = {**a100, "memory_gib": a100["memory_gib"] - 1}
    both = {"p4d.24xlarge": ["first", "behind"]}

    def values(pools: dict[str, NodeOffer]) -> list[str]:
        found = {body["metadata"]["name"]: body for body in runtimes(pools, IMAGE, both)}
        if "torch-p4d.24xlarge" not in found:
            return []
        (job,) = found["torch-p4d.24xlarge"]["spec"]["template"]["spec"]["replicatedJobs"]
        pod = job["template"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert container["resources"]["limits"]["memory"] == f"{smaller['memory_gib']}Gi"
        terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (match,) = terms["nodeSelectorTerms"][0]["matchExpressions"]
        return list(match["values"])

    assert values({"first": a100, "behind": smaller}) == ["first", "behind"]
    assert values({"first": a100}) == values({"first": a100, "behind": other}) == []
