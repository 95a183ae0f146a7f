"""Pools that close: jobs start if they end in time or checkpoint, and are stopped when the time is over."""

import datetime
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from components.kubernetes.capacity.args import WindowArgs, settings
from components.kubernetes.capacity.capacity_windows import NAME, NAMESPACE, PROGRAM, CapacityWindows
from components.kubernetes.queueing.quotas import TeamArgs
from rehearsal.controlplane.api import KubernetesApi
from rehearsal.controlplane.processes import free_ports
from tests.cluster.manifests import manifests
from tests.cluster.programs import started
from tests.cluster.queues.lab import IMAGE, Lab, flavor, queues
from tests.cluster.waiting import eventually, gone
from tests.components.graph import deploy_graph

TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]
LIMIT, SAVES = "kueue.x-k8s.io/max-exec-time-seconds", "trainstack.dev/checkpoint-minutes"
_RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding")


def at(hours: float) -> str:
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def block(starts_h: float, closes_h: float) -> WindowArgs:
    """A block that closes so many hours from now."""
    ends = at(closes_h + 40 / 60)
    return {"block": {"starts": at(starts_h), "ends": ends, "drain_minutes": 40}}


def night() -> WindowArgs:
    """An hour that begins in two hours, for sweeps."""
    begins = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=2)
    days = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
    return {"hours": {"days": days, "start": f"{begins:%H:%M}", "hours": 1, "classes": ["sweep"]}}


@dataclass
class Pools:
    """A lab with two pools that close, and the program that keeps them."""

    api: KubernetesApi
    folder: Path
    lab: Lab = field(init=False)
    windows: dict[str, WindowArgs] = field(init=False)
    process: subprocess.Popen[str] = field(init=False)

    def start(self, windows: Mapping[str, WindowArgs]) -> None:
        """Start the program, with the rights that a stack gives it."""
        (port,) = free_ports(1)
        given = {"windows": settings(windows), "port": port}
        token = self.api.token(NAMESPACE, NAME)
        self.process = started(PROGRAM, given, self.api.access, token, self.folder)

    def stop(self) -> None:
        """End the program, which has to run until then."""
        running = self.process.poll() is None
        self.process.terminate()
        _, stderr = self.process.communicate(timeout=20)
        assert running and "Traceback" not in stderr, stderr

    @contextmanager
    def kept(self, windows: Mapping[str, WindowArgs]) -> Iterator[None]:
        """The program runs."""
        self.start(windows)
        try:
            yield
        finally:
            self.stop()

    def changed(self, **windows: WindowArgs) -> None:
        """Other times, by which a stack starts the program anew."""
        self.stop()
        self.start({**self.windows, **windows})

    def submit(self, name: str, pool: str, priority: str = "", **labels: str) -> None:
        asked = {"kueue.x-k8s.io/queue-name": pool, **labels}
        self.lab.submit("Research", name, gpus=8, priority=priority, labels=asked)

    def check(self, name: str) -> Mapping[str, Any]:
        """The state of a job's check, {} while it has none."""
        rows: Any = (self.lab.workload(name).get("status") or {}).get("admissionChecks") or ({},)
        return dict(rows[0])

    def eviction_message(self, name: str) -> str:
        """Why a job lost its admission, as shown at its Job; it has no quota any more."""
        lab = self.lab
        eventually(lambda: lab.condition(name, "Evicted").get("status") == "True", lambda: lab.workload(name))
        eventually(lambda: lab.condition(name, "QuotaReserved").get("status") == "False")
        events = self.api.list("v1", "Event", lab.jobs[name])
        mine = [row for row in events if row["involvedObject"]["uid"] == lab.job(name)["metadata"]["uid"]]
        return str([row["message"] for row in mine if row["reason"] == "PoolClosed"][-1])


@pytest.fixture
def pools(api: KubernetesApi, tmp_path: Path) -> Iterator[Pools]:
    found = Pools(api, tmp_path)
    windows = {"block": block(-1, 3), "night": night()}
    flavors = [
        flavor("l4", "g6.2xlarge", 1),
        *(flavor(name, "p4d.24xlarge", 4, own_queue=True, window=one) for name, one in windows.items()),
    ]
    args: Any = {"windows": windows, "image": IMAGE}
    graph = deploy_graph(lambda: {"program": CapacityWindows("c", args).program})
    rights = [body for body in manifests(graph) if body["kind"] in _RIGHTS]
    for body in rights:
        api.apply(body)
    try:
        # A queue is not active until the controller of its check responds.
        with found.kept(windows), queues(api, flavors, TEAM) as found.lab:
            found.windows = windows
            yield found
    finally:
        # The namespace stays for the next test, which it would keep waiting.
        passing = [body for body in rights if body["kind"] != "Namespace"]
        for body in reversed(passing):
            metadata = body["metadata"]
            api.delete(body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace", ""))
        gone(api, passing)


def test_only_what_ends_in_time_or_checkpoints_starts_on_a_block(pools: Pools) -> None:
    pools.submit("short", "block", **{LIMIT: "3600"})
    pools.submit("saves", "block", **{SAVES: "30"})
    pools.submit("long", "block", **{LIMIT: "36000"})
    pools.submit("silent", "block")
    pools.lab.runs("short", "saves")
    assert "10 h" in pools.eviction_message("long")
    assert "max-exec-time-seconds" in pools.eviction_message("silent")
    # Two of four nodes are in use, and who was sent away keeps no quota.
    pools.submit("third", "block", **{LIMIT: "60"})
    pools.submit("fourth", "block", **{LIMIT: "60"})
    pools.lab.runs("third", "fourth")
    assert pools.lab.pods("long") == pools.lab.pods("silent") == []


def test_hours_hold_the_jobs_of_their_classes_alone(pools: Pools) -> None:
    pools.submit("sweep", "night", "sweep", **{LIMIT: "600"})
    pools.submit("urgent", "night", "production")
    pools.lab.runs("urgent")
    assert "opens at" in pools.eviction_message("sweep")


def test_a_block_that_ends_while_jobs_run_stops_them_and_calls_them_back_when_it_is_extended(
    pools: Pools,
) -> None:
    pools.submit("saves", "block", **{SAVES: "30"})
    pools.submit("late", "block", **{LIMIT: "36000"})
    pools.lab.runs("saves")
    pools.eviction_message("late")
    eventually(lambda: len(pools.lab.pods("saves")) == 1)
    pools.changed(block=block(-9, 0))
    assert "ends now" in pools.eviction_message("saves")
    # Stopped as Kueue stops: its pod gets SIGTERM, and the Job has not failed but waits.
    eventually(lambda: pools.lab.pods("saves") == [])
    assert pools.lab.job("saves")["spec"]["suspend"] and not pools.lab.job("saves")["status"].get("failed")
    pools.changed(block=block(-9, 12))
    pools.lab.runs("saves", "late")


def test_jobs_wait_while_the_program_is_down(pools: Pools) -> None:
    pools.submit("running", "block", **{SAVES: "30"})
    pools.lab.runs("running")
    pools.stop()
    pools.submit("waiting", "block", **{LIMIT: "60"})
    eventually(lambda: pools.check("waiting").get("state") == "Pending")
    assert not pools.lab.admitted("waiting") and pools.lab.admitted("running")
    pools.start({**pools.windows, "block": block(5, 9)})
    # It has not begun yet: no job runs, and waiting jobs have its start in their message.
    assert "opens at" in pools.eviction_message("waiting")
    assert "has closed" in pools.eviction_message("running")
    pools.changed()
    pools.lab.runs("waiting", "running")
