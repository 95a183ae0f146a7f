"""The controller of one Job: starts its pods, counts their ends, says when it is complete or has failed."""

import copy
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rehearsal.workloads.controllers import (
    PodOrder,
    Spawn,
    Status,
    letters,
    shares,
    stop_all,
    timestamp,
)
from rehearsal.workloads.pod import PodRunner
from rehearsal.workloads.translate import Object

_INDEX = "batch.kubernetes.io/job-completion-index"
# The reason of a Job that the rehearsal itself ended; a real cluster would have let it go on.
INTERRUPTED = "Interrupted"
_RETRY_S = 0.25
# source: kubernetes.io/docs/concepts/workloads/controllers/job (10 s, doubled, at most
# 6 min), ten times faster
_BACKOFF_S, _BACKOFF_MAX_S = 1.0, 36.0


@dataclass(frozen=True)
class JobOrder:
    """The Job to run; `hold` says why it may not start yet (a queue), empty when it may."""

    namespace: str
    name: str
    uid: str
    spec: Object
    hold: Callable[[], str]
    node_selector: Callable[[], dict[str, str]] = dict


class JobRun:
    """A Job under way in a thread of its own.

    `started` is called with its first pods, `ended` with the status once it is complete or has failed.
    """

    def __init__(
        self,
        order: JobOrder,
        spawn: Spawn,
        started: Callable[[list[PodRunner]], None],
        ended: Callable[[Status], None],
    ) -> None:
        self.order, self._spawn, self._started, self._ended_with = order, spawn, started, ended
        spec = order.spec
        self._indexed = spec.get("completionMode") == "Indexed"
        self._completions = int(spec.get("completions") or spec.get("parallelism") or 1)
        self._parallelism = min(int(spec.get("parallelism") or 1), self._completions)
        self._limit = int(spec["backoffLimit"]) if spec.get("backoffLimit") is not None else 6
        self._running: dict[int, PodRunner] = {}
        self._ended: list[PodRunner] = []
        self._done: set[int] = set()
        self._failed = 0
        self._status: Status = {}
        self.held = ""
        self._stopping, self._now = threading.Event(), False
        self._changed = threading.Event()
        self.over = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"job {order.namespace}/{order.name}", daemon=True
        )

    def start(self) -> None:
        """Start the Job; its pods must be visible to the cluster through `pods` by now."""
        self._thread.start()

    def pods(self) -> list[PodRunner]:
        """Its pods, ended ones included."""
        return list(self._ended) + list(self._running.values())

    def status(self) -> Status:
        """Counts, times and conditions."""
        counts = {"active": len(self._running), "succeeded": len(self._done), "failed": self._failed}
        return {**{name: count for name, count in counts.items() if count}, **copy.deepcopy(self._status)}

    def stop(self, *, now: bool = False) -> None:
        """End every pod; returns when nothing of them runs."""
        self._now = now
        self._stopping.set()
        self._changed.set()
        self._thread.join(12.0)

    def interrupt(self, why: str) -> None:
        """End every pod and call the Job failed."""
        self._conclude("Failed", INTERRUPTED, f"Job was ended: {why}")
        self.stop()

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            if self._admitted():
                self._status["startTime"] = timestamp()
                self._work(time.monotonic())
        finally:
            stop_all(list(self._running.values()), now=self._now)
            self._ended.extend(self._running.values())
            self._running.clear()
            if self._status.get("conditions"):
                self._ended_with(self.status())
            self.over.set()

    def _admitted(self) -> bool:
        """Wait in the queue; whether the Job may start."""
        while not self._stopping.is_set():
            self.held = self.order.hold()
            if not self.held:
                return True
            self._stopping.wait(_RETRY_S)
        return False

    def _work(self, began: float) -> None:
        cpus = shares(self._parallelism)
        orders = [self._order(index, 0, cpus[index % len(cpus)]) for index in range(self._completions)]
        first = orders[: self._parallelism]
        # All of them exist before the first one starts, so that each finds the others' names.
        self._running = {index: self._make(order) for index, order in enumerate(first)}
        for runner in self._running.values():
            runner.start()
        self._started(list(self._running.values()))
        deadline = self.order.spec.get("activeDeadlineSeconds")
        while not self._stopping.is_set():
            left = None if deadline is None else began + float(deadline) - time.monotonic()
            if left is not None and left <= 0:
                self._fail("DeadlineExceeded", "Job was active longer than specified deadline")
                return
            self._changed.wait(left)
            self._changed.clear()
            if not self._collect():
                return
            waiting = (i for i in range(self._completions) if i not in self._done and i not in self._running)
            for index in list(waiting)[: self._parallelism - len(self._running)]:
                self._retry(index, cpus[index % len(cpus)])

    def _collect(self) -> bool:
        """Count the pods that ended; whether the Job goes on."""
        for index, runner in list(self._running.items()):
            if not runner.state.over or not runner.join(0.5):
                continue
            del self._running[index]
            self._ended.append(runner)
            if runner.state.phase == "Succeeded":
                self._done.add(index)
            else:
                self._failed += 1
        if self._failed > self._limit:
            self._fail("BackoffLimitExceeded", "Job has reached the specified backoff limit")
            return False
        if len(self._done) == self._completions:
            self._conclude("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
            self._status["completionTime"] = timestamp()
            return False
        return True

    def _retry(self, index: int, cpus: list[int]) -> None:
        attempts = sum(runner.pod.name.startswith(self._stem(index) + "-") for runner in self._ended)
        if attempts:
            self._stopping.wait(min(_BACKOFF_S * 2 ** (attempts - 1), _BACKOFF_MAX_S))
        if not self._stopping.is_set():
            runner = self._running[index] = self._make(self._order(index, attempts, cpus))
            runner.start()

    def _make(self, order: PodOrder) -> PodRunner:
        return self._spawn(order, "Never", self._changed.set)

    def _stem(self, index: int) -> str:
        return f"{self.order.name}-{index}" if self._indexed else self.order.name

    def _order(self, index: int, attempt: int, cpus: list[int]) -> PodOrder:
        template = self.order.spec["template"]
        metadata = template.get("metadata") or {}
        spec: dict[str, Any] = dict(template["spec"])
        labels = {**(metadata.get("labels") or {}), "job-name": self.order.name}
        labels["batch.kubernetes.io/job-name"] = self.order.name
        labels["batch.kubernetes.io/controller-uid"] = self.order.uid
        annotations = dict(metadata.get("annotations") or {})
        selector = self.order.node_selector()
        if selector:
            spec["nodeSelector"] = {**selector, **(spec.get("nodeSelector") or {})}
        if self._indexed:
            spec.setdefault("hostname", f"{self.order.name}-{index}")
            labels[_INDEX] = annotations[_INDEX] = str(index)
            spec["containers"] = [_with_index(container, index) for container in spec["containers"]]
        suffix = letters(f"{self.order.uid}/{index}/{attempt}", 5)
        return PodOrder(
            name=f"{self._stem(index)}-{suffix}",
            slot=f"job|{self.order.namespace}/{self.order.name}|{index}",
            spec=spec,
            labels=labels,
            annotations=annotations,
            cpus=cpus,
        )

    def _fail(self, reason: str, message: str) -> None:
        self._conclude("Failed", reason, message)

    def _conclude(self, kind: str, reason: str, message: str) -> None:
        self._status["conditions"] = [
            {
                "type": kind,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": timestamp(),
                "lastProbeTime": timestamp(),
            }
        ]


def _with_index(container: Object, index: int) -> Object:
    """The container with the variable that Kubernetes adds to every container of an indexed Job."""
    return {
        **container,
        "env": [*(container.get("env") or ()), {"name": "JOB_COMPLETION_INDEX", "value": str(index)}],
    }
