"""The gate's objects as its component makes them, in a real cluster with our queues and fake GPU nodes."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.kubernetes.queueing import kueue
from components.kubernetes.queueing.quotas import FlavorArgs, TeamArgs
from components.kubernetes.validation import watcher
from components.kubernetes.validation.args import SmokeTestArgs
from components.kubernetes.validation.gate import SmokeTest
from components.kubernetes.validation.smoke_home import SmokeHome
from infra.naming import gate_queue, team_namespace
from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.controlplane.nodes import KwokPool, add_nodes
from smoke_training.verdict_record import VerdictRecord, records
from tests.cluster.manifests import manifests
from tests.cluster.programs import finished, started
from tests.cluster.waiting import gone
from tests.components.graph import deploy_graph

LABELS = {"trainstack.dev/pool": "gate-a100"}
TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
FLAVOR: FlavorArgs = {
    "name": "gate-a100", "node_labels": LABELS, "max_nodes": 2, "cpu": 90, "memory_gib": 1000, "gpus": 8,
}  # fmt: skip
TEAM: TeamArgs = {"name": "gate-team", "weight": 1.0}
QUEUE = gate_queue("gate-a100")
SMOKE: SmokeTestArgs = {
    "pool": "gate-a100",
    "namespace": kueue.GATE_NAMESPACE,
    "queue": QUEUE,
    "priority": kueue.VALIDATION,
    "plan": {"stack": "test"},
    "image": "example.com/train@sha256:" + "0" * 64,
    "watch_image": "example.com/mlflow@sha256:" + "0" * 64,
    "nodes": 2,
    "node": {"cpu": 80, "memory_gib": 900, "gpus": 8},
    "pool_labels": LABELS,
    "tracking_url": "http://mlflow.mlflow.svc.cluster.local:5000",
    "environment": {},
    "login_secret": "mlflow-login",
    "timeout_s": 900,
}


def composed() -> list[Object]:
    """The objects of the component, in the order of their creation."""

    def program() -> Mapping[str, pulumi.Input[Any]]:
        home = SmokeHome("gate", {"namespace": kueue.GATE_NAMESPACE})
        return {"job": SmokeTest("gate", {**SMOKE, "namespace": home.namespace}).job_name}

    return manifests(deploy_graph(program))


@dataclass
class Gate:
    """One gate in one cluster."""

    api: KubernetesApi
    job: Object
    folder: Path

    def start(self, **annotations: str) -> str:
        """Create the validation's Job, with annotations by which its fake pods live; its uid."""
        body = json.loads(json.dumps(self.job))
        template = body["spec"]["template"].setdefault("metadata", {})
        template.setdefault("annotations", {}).update(
            {f"trainstack.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
        )
        return str(self.api.create(body)["metadata"]["uid"])

    def live(self) -> Object:
        return self.api.get("batch/v1", "Job", self.job["metadata"]["name"], kueue.GATE_NAMESPACE)

    def watch(
        self, uid: str, *, queue_s: float, start_s: float, total_s: float = 120
    ) -> tuple[int, VerdictRecord]:
        """Run the watcher's program as its pod would, with a token of its own account; code and record."""
        given = {
            "namespace": kueue.GATE_NAMESPACE, "job": self.job["metadata"]["name"], "uid": uid,
            "pool": SMOKE["pool"],
            "queue-seconds": queue_s, "start-seconds": start_s, "total-seconds": total_s,
            "message": self.folder / "message",
        }  # fmt: skip
        token = self.api.token(watcher.NAMESPACE, watcher.NAME)
        process = started(watcher.PROGRAM, given, self.api.access, token, self.folder)
        code, message = finished(process, self.folder, total_s + 30)
        (record,) = records(message)
        return code, record


Create = Callable[[Object], None]


@pytest.fixture
def create(api: KubernetesApi) -> Iterator[Create]:
    """Makes objects that go with the test, the last one first."""
    made: list[Object] = []

    def apply(body: Object) -> None:
        api.apply(body)
        made.append(body)

    yield apply
    for body in reversed(made):
        metadata = body["metadata"]
        api.delete(body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace", ""))
    gone(api, made)


@pytest.fixture
def queues(api: KubernetesApi, create: Create) -> Iterator[None]:
    """The gate's queue, and two nodes for it."""
    labels = {"trainstack.dev/queueing": "required", "kubernetes.io/metadata.name": kueue.GATE_NAMESPACE}
    create({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kueue.GATE_NAMESPACE, "labels": labels},
    })  # fmt: skip
    team: Object = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": team_namespace(TEAM["name"])},
    }
    create(team)
    for layer in kueue.layers([FLAVOR], [TEAM], {"nodes": {"gate-a100": 2}}):
        for body in layer:
            create(body)
    nodes = KwokPool("gate", "p4d.24xlarge", 2, labels=LABELS, taints=[TAINT])
    add_nodes(api, [nodes])
    yield
    for index in range(nodes.count):
        api.delete("v1", "Node", f"gate-{index}")


@pytest.fixture
def gate(api: KubernetesApi, tmp_path: Path, create: Create, queues: None) -> Iterator[Gate]:
    """Queues, nodes and the gate's objects but for its two Jobs."""
    objects = composed()
    for body in objects:
        if body["kind"] != "Job":
            create(body)
    (job,) = [
        body for body in objects
        if body["kind"] == "Job" and body["metadata"]["namespace"] == kueue.GATE_NAMESPACE
    ]  # fmt: skip
    yield Gate(api, job, tmp_path)
    name = job["metadata"]["name"]
    api.delete("batch/v1", "Job", name, kueue.GATE_NAMESPACE)
    gone(api, [job])
