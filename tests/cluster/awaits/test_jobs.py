"""The emulated Job controller ends Jobs as the real one does: the same condition, reason and counts."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.controlplane.nodes import KwokPool, add_nodes
from rehearsal.workloads import job
from rehearsal.workloads.controllers import PodOrder, Status
from rehearsal.workloads.job import JobController, JobOrder
from rehearsal.workloads.pod import PodState

POOL = "awaits"
SECONDS, CODE = "trainstack.dev/seconds", "trainstack.dev/exit-code"
IN_3 = {"operator": "In", "values": [3]}
PAIR = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}


@dataclass(frozen=True)
class Case:
    """A Job whose pods all end with a code after a second; without a code they run until they are deleted."""

    code: int | None
    spec: dict[str, Any] = field(default_factory=dict)


def policy(action: str) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": [{"action": action, "onExitCodes": IN_3}]}}


CASES = {
    "complete": Case(0),
    "work-queue": Case(0, {"parallelism": 2}),
    "backoff": Case(3),
    "fail-job": Case(3, {"backoffLimit": 2, **policy("FailJob")}),
    "count": Case(3, policy("Count")),
    "ignored-until-late": Case(3, {"activeDeadlineSeconds": 3, **policy("Ignore")}),
    "late": Case(None, {"activeDeadlineSeconds": 1, **PAIR}),
    "fail-index": Case(3, {"backoffLimit": None, "backoffLimitPerIndex": 2, **policy("FailIndex"), **PAIR}),
    "max-failed-indexes": Case(
        3, {"backoffLimit": None, "backoffLimitPerIndex": 0, "maxFailedIndexes": 0, **PAIR, "parallelism": 1}
    ),
    "success-policy": Case(
        0, {**PAIR, "parallelism": 1, "successPolicy": {"rules": [{"succeededCount": 1}]}}
    ),
    "suspended": Case(0, {"suspend": True}),
}


def manifest(name: str, namespace: str, case: Case) -> Object:
    given = {} if case.code is None else {SECONDS: "1s", CODE: str(case.code)}
    pod = {
        "restartPolicy": "Never",
        "nodeSelector": {"trainstack.dev/pool": POOL},
        "containers": [{"name": "main", "image": "example.com/none:1"}],
    }
    spec = {"backoffLimit": 0, "template": {"metadata": {"annotations": given}, "spec": pod}, **case.spec}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": namespace},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }  # fmt: skip


def settled(status: Status) -> bool:
    kinds = [row["type"] for row in status.get("conditions") or () if row["status"] == "True"]
    return any(kind in ("Complete", "Failed", "Suspended") for kind in kinds)


def outcome(status: Status) -> dict[str, Any]:
    """What both have to agree on."""
    rows = [(row["type"], row["status"], row.get("reason", "")) for row in status.get("conditions") or ()]
    counts = ("active", "succeeded", "failed", "completedIndexes", "failedIndexes")
    return {"conditions": sorted(rows), **{name: status.get(name) for name in counts if status.get(name)}}


class FakePod:
    """A pod of the emulated controller that ends as the annotations of its order say."""

    def __init__(self, order: PodOrder, changed: Any) -> None:
        self.pod = SimpleNamespace(namespace="lab", name=order.name)
        self.state, self._changed = PodState(phase="Running"), changed
        self._code = order.annotations.get(CODE)
        self.ended = threading.Event()

    def start(self) -> None:
        if self._code is not None:
            threading.Timer(1.0, self._end, [int(self._code)]).start()

    def _end(self, code: int) -> None:
        if not self.ended.is_set():
            self.state = PodState(phase="Failed" if code else "Succeeded", exit_code=code)
            self.ended.set()
            self._changed()

    def stop(self, *, now: bool = False) -> None:
        self.ended.set()

    def join(self, timeout_s: float) -> bool:
        return self.ended.wait(timeout_s)

    def exits(self) -> dict[str, int]:
        return {"main": int(self._code or 0)}


@pytest.fixture(scope="module")
def _nodes(api: KubernetesApi) -> Iterator[None]:
    add_nodes(api, [KwokPool(POOL, "p4d.24xlarge", 1, labels={"trainstack.dev/pool": POOL})])
    yield
    api.delete("v1", "Node", f"{POOL}-0")


def emulated(body: Object) -> Status:
    """The status in which the emulated controller leaves a Job."""

    def spawn(order: PodOrder, _restart: str, changed: Any) -> Any:
        return FakePod(order, changed)

    name, suspended = str(body["metadata"]["name"]), bool(body["spec"].get("suspend"))
    order = JobOrder("lab", name, "1", body["spec"], lambda: "", lambda: suspended)
    run = JobController(order, spawn, lambda _pods: None, lambda _status: None)
    run.start()
    deadline = time.monotonic() + 30
    while not (run.over.is_set() or (suspended and settled(run.status()))):
        assert time.monotonic() < deadline, f"{name} did not end in the emulation"
        time.sleep(0.05)
    run.stop()
    return run.status()


@pytest.mark.more  # compares the emulation with the real thing, as the differential test does
@pytest.mark.usefixtures("_nodes")
def test_jobs_end_alike_in_the_emulation_and_in_a_cluster(
    api: KubernetesApi, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_BACKOFF_S", 10.0)  # that of a cluster; the rehearsal is ten times faster
    bodies = {name: manifest(name, namespace, case) for name, case in CASES.items()}
    for body in bodies.values():
        api.create(body)
    here = {name: outcome(emulated(body)) for name, body in bodies.items()}
    deadline = time.monotonic() + 60
    there: dict[str, Any] = {}
    while len(there) < len(bodies):
        assert time.monotonic() < deadline, f"{set(bodies) - set(there)} did not end in the cluster"
        jobs = api.list("batch/v1", "Job", namespace)
        found = {one["metadata"]["name"]: one.get("status") or {} for one in jobs}
        there = {name: outcome(status) for name, status in found.items() if settled(status)}
        time.sleep(0.2)
    for found in (here, there):
        # Pods come and go each second: whether one ran when the time was over is chance.
        found["ignored-until-late"].pop("failed", None)
    assert here == there
