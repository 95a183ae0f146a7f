"""A validation of two nodes as a stack asks for it."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components.kubernetes.offers import FabricOffer, NodeOffer
from components.kubernetes.validation.args import SmokeTestArgs
from components.kubernetes.validation.gate import SmokeTest
from components.kubernetes.validation.smoke_home import SmokeHome
from smoke_training.fabric import Fabric
from tests.components.graph import Graph, deploy_graph

FABRIC: FabricOffer = {
    "kind": Fabric.EFA,
    "resource": "vpc.amazonaws.com/efa",
    "count": 4,
    "pod_resources": {"hugepages-2Mi": "5120Mi"},
}
CLAIMED: FabricOffer = {**FABRIC, "device_class": "efa.networking.k8s.aws"}
NODE: NodeOffer = {"cpu": 80, "memory_gib": 900, "gpus": 8, "fabric": FABRIC}
PLAN = {"stack": "dev-aws", "instance_type": "p4d.24xlarge", "hourly_cost_usd": None}


def args() -> SmokeTestArgs:
    return {
        "pool": "a100",
        "namespace": "trainstack-smoke",
        "queue": "smoke",
        "priority": "validation",
        "plan": PLAN,
        "image": "registry.example/pytorch@sha256:00",
        "watch_image": "registry.example/mlflow@sha256:11",
        "nodes": 2,
        "node": NODE,
        "pool_labels": {"trainstack.dev/pool": "a100"},
        "tracking_url": "http://mlflow.mlflow.svc.cluster.local:5000",
        "environment": {"REGION": "here"},
        "login_secret": "mlflow-login",
        "timeout_s": 900,
    }


def smoke(given: SmokeTestArgs) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        home = SmokeHome("dev-smoke", {"namespace": given["namespace"]})
        made = SmokeTest("dev-smoke", {**given, "namespace": home.namespace})
        return {"job": made.job_name, "result": made.result_path, "digest": made.digest}

    return deploy_graph(program)


def container(graph: Graph) -> Mapping[str, Any]:
    (only,) = graph.find("Job", "-job")["spec"]["template"]["spec"]["containers"]
    found: Mapping[str, Any] = only
    return found


def environment(graph: Graph) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in container(graph)["env"]}
