"""The controller of one Job: starts its pods, counts their ends, and sets the Job complete or failed."""

import copy
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rehearsal.workloads.controllers import PodOrder, Spawn, Status, letters, shares, stop_all, timestamp
from rehearsal.workloads.job_rules import (
    FailedPod,
    JobOutcome,
    JobSpec,
    PodCounts,
    intervals,
    judge,
    judge_pod,
)
from rehearsal.workloads.pod import PodRunner
from rehearsal.workloads.translate import Object

_INDEX = "batch.kubernetes.io/job-completion-index"
# The reason of a Job that the rehearsal itself ended; a real cluster would have continued it.
INTERRUPTED = "Interrupted"
_RETRY_S = 0.25
# source: DefaultJobPodFailureBackOff and MaxJobPodFailureBackOff in kubernetes/kubernetes v1.36.2
# pkg/controller/job/job_controller.go (10 s, doubled, at most 10 min), ten times faster
_BACKOFF_S, _BACKOFF_MAX_S = 1.0, 60.0


@dataclass(frozen=True)
class JobOrder:
    """The Job to run.

    `hold` returns why it may not start yet (a queue), empty when it may; `suspended` returns whether its own
    object suspends it.
    """

    namespace: str
    name: str
    uid: str
    spec: Object
    hold: Callable[[], str]
    suspended: Callable[[], bool] = lambda: False
    node_selector: Callable[[], dict[str, str]] = dict


class JobController:
    """A running Job in a thread of its own.

    `started` is called with its first pods, and with none when it is suspended; `ended` with the status once
    it is complete or has failed.
    """

    def __init__(
        self,
        order: JobOrder,
        spawn: Spawn,
        started: Callable[[list[PodRunner]], None],
        ended: Callable[[Status], None],
    ) -> None:
        self.order, self._spawn, self._started, self._ended_with = order, spawn, started, ended
        self._spec = JobSpec.parse(order.spec)
        self._running: dict[int, PodRunner] = {}
        self._ended: list[PodRunner] = []
        self._done: set[int] = set()
        self._failed, self._fail_job = 0, ""
        self._failed_indexes: set[int] = set()
        # By slot: started pods, counted failures, and the earliest start of the next pod.
        self._attempts, self._failures = Counter[int](), Counter[int]()
        self._due: dict[int, float] = {}
        self._status: Status = {"conditions": []}
        self.held = ""
        self._began: float | None = None
        self._stopping, self._now = threading.Event(), False
        self._changed = threading.Event()
        self.over = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"job {order.namespace}/{order.name}", daemon=True
        )

    def start(self) -> None:
        """Start the Job; the cluster must see its pods through `pods` already."""
        self._thread.start()

    def pods(self) -> list[PodRunner]:
        """Its pods, ended ones included."""
        return list(self._ended) + list(self._running.values())

    def status(self) -> Status:
        """Counts, times and conditions."""
        counts = {"active": len(self._running), "succeeded": len(self._done), "failed": self._failed}
        found: Status = {name: count for name, count in counts.items() if count}
        if self._spec.indexed and self._done:
            found["completedIndexes"] = intervals(self._done)
        if self._spec.backoff_limit_per_index is not None:
            found["failedIndexes"] = intervals(self._failed_indexes)
        kept = copy.deepcopy(self._status)
        return {**found, **{name: value for name, value in kept.items() if value}}

    def look_again(self) -> None:
        """Check again whether the changed object is suspended or resumed."""
        self._changed.set()

    def stop(self, *, now: bool = False) -> None:
        """End every pod; returns when none of their processes runs."""
        self._now = now
        self._stopping.set()
        self._changed.set()
        self._thread.join(12.0)

    def interrupt(self, reason: str) -> None:
        """End every pod and set the Job failed."""
        self._set_condition("Failed", "True", INTERRUPTED, f"Job was ended: {reason}")
        self.stop()

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if self._holds():
                    self._suspend()
                elif self._sync():
                    return
                self._changed.wait(self._patience())
                self._changed.clear()
        finally:
            self._end_pods()
            if any(row["type"] in ("Complete", "Failed") for row in self._status["conditions"]):
                self._ended_with(self.status())
            self.over.set()

    def _holds(self) -> bool:
        """Return whether the Job is held: a queue admits it once, its own object suspends it any time."""
        queue = self.order.hold() if self._began is None else ""
        self.held = "it is suspended" if self.order.suspended() else queue
        return bool(self.held)

    def _suspend(self) -> None:
        """End the pods without counting them as failures."""
        self._end_pods()
        if self._began is not None:
            self._started([])
        self._began = None
        self._status.pop("startTime", None)
        self._set_condition("Suspended", "True", "JobSuspended", "Job suspended")

    def _sync(self) -> bool:
        """Count, judge, and start missing pods; returns whether the Job is over."""
        if self._began is None:
            self._began, self._status["startTime"] = time.monotonic(), timestamp()
            if self._status["conditions"]:
                self._set_condition("Suspended", "False", "JobResumed", "Job resumed")
            self._start(self._missing())
            self._started(list(self._running.values()))
        self._collect()
        restarts = sum(runner.state.restarts for runner in self._running.values())
        late = self._spec.deadline_s is not None and time.monotonic() - self._began >= self._spec.deadline_s
        tally = PodCounts(
            self._done, self._failed, self._failed_indexes, len(self._running), restarts, late, self._fail_job
        )
        verdict = judge(self._spec, tally)
        if verdict:
            self._conclude(verdict)
            return True
        self._start([slot for slot in self._missing() if self._due.get(slot, 0.0) <= time.monotonic()])
        return False

    def _patience(self) -> float | None:
        """Seconds until the next action is due; None if only a change can cause one."""
        if self._began is None:
            return _RETRY_S
        times = [self._due[slot] for slot in self._missing() if slot in self._due]
        if self._spec.deadline_s is not None:
            times.append(self._began + self._spec.deadline_s)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _collect(self) -> None:
        """Count the pods that ended."""
        for slot, runner in list(self._running.items()):
            if not runner.state.over or not runner.join(0.5):
                continue
            del self._running[slot]
            self._ended.append(runner)
            if runner.state.phase == "Succeeded":
                self._done.add(slot)
            else:
                self._count_failure(slot, runner)

    def _count_failure(self, slot: int, runner: PodRunner) -> None:
        failed = FailedPod(runner.pod.namespace, runner.pod.name, runner.exits())
        action, message = judge_pod(self._spec.failure_rules, failed)
        if action == "FailJob":
            self._fail_job = self._fail_job or message
        if action != "Ignore":
            self._failed += 1
            self._failures[slot] += 1
        per_index = self._spec.backoff_limit_per_index
        if action == "FailIndex" or (per_index is not None and self._failures[slot] > per_index):
            self._failed_indexes.add(slot)
        pause = min(_BACKOFF_S * 2 ** (self._attempts[slot] - 1), _BACKOFF_MAX_S)
        self._due[slot] = time.monotonic() + pause

    def _missing(self) -> list[int]:
        """The slots to start now, up to the parallelism."""
        room = self._spec.parallelism - len(self._running)
        if self._spec.completions is None and self._done:
            return []  # the first success means that the work queue is empty
        settled = {*self._done, *self._running, *self._failed_indexes}
        return [slot for slot in range(self._spec.slots) if slot not in settled][: max(0, room)]

    def _start(self, slots: list[int]) -> None:
        # All pods exist before the first one starts, so that each resolves the names of the others.
        made = {slot: self._make(slot) for slot in slots}
        self._running.update(made)
        for runner in made.values():
            runner.start()

    def _make(self, slot: int) -> PodRunner:
        order = self._order(slot, self._attempts[slot], share(self._spec, slot))
        self._attempts[slot] += 1
        return self._spawn(order, self._spec.restart, self._changed.set)

    def _end_pods(self) -> None:
        stop_all(list(self._running.values()), now=self._now)
        self._ended.extend(self._running.values())
        self._running.clear()

    def _conclude(self, verdict: JobOutcome) -> None:
        """Set the interim condition, end the other pods, and set the final condition."""
        complete = verdict.type == "Complete"
        interim = "SuccessCriteriaMet" if complete else "FailureTarget"
        self._set_condition(interim, "True", verdict.reason, verdict.message)
        if not complete:
            self._failed += len(self._running)
        self._end_pods()
        self._set_condition(verdict.type, "True", verdict.reason, verdict.message)
        if complete:
            self._status["completionTime"] = timestamp()

    def _set_condition(self, kind: str, status: str, reason: str, message: str) -> None:
        others = [row for row in self._status["conditions"] if row["type"] != kind]
        condition = {"type": kind, "status": status, "reason": reason, "message": message}
        stamps = {"lastTransitionTime": timestamp(), "lastProbeTime": timestamp()}
        before = [row for row in self._status["conditions"] if row["type"] == kind]
        if not before or before[0]["status"] != status:
            self._status["conditions"] = [*others, {**condition, **stamps}]

    # -- pods ------------------------------------------------------------------------------------------

    def _stem(self, index: int) -> str:
        return f"{self.order.name}-{index}" if self._spec.indexed else self.order.name

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
        if self._spec.indexed:
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


def share(spec: JobSpec, slot: int) -> list[int]:
    """The processors for one pod of a Job: concurrent pods share this machine."""
    of_each = shares(max(1, min(spec.parallelism, spec.slots)))
    return of_each[slot % len(of_each)]


def _with_index(container: Object, index: int) -> Object:
    """The container with the variable that Kubernetes adds to every container of an indexed Job."""
    return {
        **container,
        "env": [*(container.get("env") or ()), {"name": "JOB_COMPLETION_INDEX", "value": str(index)}],
    }
