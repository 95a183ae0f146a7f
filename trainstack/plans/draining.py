"""Stop the jobs that a change ends before the engine starts, and let queues go on afterwards."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from agents.shared.jobs import RUNNING_PODS
from agents.shared.kueue import API
from infra.clouds.kubectl import ApiResponse, ClusterApi
from infra.errors import Problem, UserError
from trainstack.collect.object_lists import ListRefusedError, listed
from trainstack.plans.jobs import STOPS, JobEffect, Removal
from trainstack.plans.leftovers import release_foreign
from trainstack.queues.state import Job

HELD = "trainstack.dev/held"
"""The annotation of Workloads that a change has stopped, and of ClusterQueues: their stopPolicy before."""
LIMIT_S = 900
"""Longest wait for pods that end: kubelets kill them earlier, after `terminationGracePeriodSeconds`."""
_MARGIN_S, _POLL_S = 30, 1.0
_GONE, _OK = 404, (200, 202)
# The API server ends a request after 60 s, with 504 or in the middle of its answer; the next one goes on.
_TIMED_OUT, _TRIES = (0, 504), 5


@dataclass(frozen=True)
class Draining:
    """Stops what a change removes. Every method raises UserError where the cluster denies a request."""

    cluster: ClusterApi
    removed: Removal
    now: bool
    """Without the grace period of pods."""
    report: Callable[[str], None]
    poll_s: float = _POLL_S
    limit_s: float = LIMIT_S
    held: set[str] = field(default_factory=set)
    """Paths of the queues and Workloads that this has stopped, and nothing before it."""
    clock: Callable[[], float] = field(default=time.monotonic)

    def stop(self, effects: Sequence[JobEffect]) -> None:
        """Stop the queues, then the pods of what is removed, and wait for their end."""
        stopped = [one.job for one in effects if one.job.holding and one.effect == STOPS]
        stays = {job.key: job for job in stopped if job.cluster_queue not in self.removed.queues}
        for queue in sorted(self.removed.queues):
            self._hold(queue, "HoldAndDrain")
        # Jobs that lose their pool would get it again before the engine has changed their queue.
        for queue in sorted({one.cluster_queue for one in stays.values()}):
            self._hold(queue, "Hold")
        for job in stays.values():
            self._activate(job, active=False)
        for namespace in sorted(self.removed.namespaces):
            self._end_pods(namespace, now=self.now)
        self._wait({job.key for job in stopped})
        for job in stays.values():
            self._wait_released(job)
            self._activate(job, active=True)
        release_foreign(self.cluster, sorted(self.removed.namespaces), self.report, now=self.now)

    def _hold(self, queue: str, policy: str) -> None:
        path = f"{API}/clusterqueues/{queue}"
        found = self.cluster.get(path)
        if found.status == _GONE:
            return
        before = (found.body.get("spec") or {}).get("stopPolicy") or "None"
        notes = found.body.get("metadata", {}).get("annotations") or {}
        note = {"annotations": {HELD: notes.get(HELD, before)}}
        if HELD not in notes:
            self.held.add(path)
        self._done(path, self.cluster.send("PATCH", path, {"metadata": note, "spec": {"stopPolicy": policy}}))

    def _activate(self, job: Job, *, active: bool) -> None:
        path = _workload(job)
        self.held.add(path)
        self._done(path, self.cluster.send("PATCH", path, _activity(active=active)))

    def _wait_released(self, job: Job) -> None:
        """Wait until Kueue has taken a deactivated job's quota: it does so after the end of its pods."""
        ends = self.clock() + _MARGIN_S
        while self.clock() < ends:
            status = self.cluster.get(_workload(job)).body.get("status") or {}
            rows = {row["type"]: row["status"] for row in status.get("conditions") or ()}
            if rows.get("QuotaReserved") != "True":
                return
            time.sleep(self.poll_s)

    def _end_pods(self, namespace: str, *, now: bool) -> None:
        """Delete the pods that have not ended."""
        path = f"/api/v1/namespaces/{namespace}/pods?{urlencode({'fieldSelector': RUNNING_PODS})}"
        options = {"gracePeriodSeconds": 0} if now else {}
        for _ in range(_TRIES):
            answer = self.cluster.send("DELETE", path, options)
            if answer.status not in _TIMED_OUT:
                break
        self._done(path, answer)

    def _wait(self, stopped: set[tuple[str, str]]) -> None:
        """Wait for pods of removed namespaces and queues, and of stopped jobs; past the limit, kill them."""
        ends: float | None = None
        shown: list[str] = []
        while left := list(self._left(stopped)):
            now = self.clock()
            if ends is None:
                grace = max(int(pod["spec"].get("terminationGracePeriodSeconds") or 0) for pod in left)
                ends = now + min(self.limit_s, (0 if self.now else grace) + _MARGIN_S)
                self.report(f"waiting for {len(left)} pods to end, at most {ends - now:.0f} s")
            names = sorted(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in left)
            if now > ends:
                self.report(f"killed, for they did not end: {', '.join(names)}")
                self._kill(left)
                return
            if names != shown:
                self.report(f"still running: {', '.join(names[:5])}{' ...' if names[5:] else ''}")
                shown = names
            time.sleep(self.poll_s)

    def _left(self, stopped: set[tuple[str, str]]) -> Iterator[Any]:
        spaces = self.removed.namespaces | {namespace for namespace, _ in stopped}
        for namespace in sorted(spaces):
            for pod in self._pods(namespace):
                workload = (pod["metadata"].get("annotations") or {}).get("kueue.x-k8s.io/workload", "")
                if namespace in self.removed.namespaces or (namespace, workload) in stopped:
                    yield pod

    def _pods(self, namespace: str) -> Iterable[Any]:
        try:
            path = f"/api/v1/namespaces/{namespace}/pods"
            found = listed(self.cluster, path, fieldSelector=RUNNING_PODS)
        except ListRefusedError as error:
            raise _denied(self.cluster, f"pods of {namespace}", error.answer) from None
        # Pods without a node have nothing to end; controllers may create them again, and Kueue gates them.
        return [one for one in found if one["spec"].get("nodeName")]

    def _kill(self, pods: Iterable[Any]) -> None:
        for pod in pods:
            about = pod["metadata"]
            path = f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}"
            self._done(path, self.cluster.send("DELETE", path, {"gracePeriodSeconds": 0}))

    def _done(self, path: str, answer: ApiResponse) -> None:
        if answer.status not in (*_OK, _GONE):
            raise _denied(self.cluster, path, answer)


def _workload(job: Job) -> str:
    return f"{API}/namespaces/{job.namespace}/workloads/{job.workload}"


def resume(cluster: ClusterApi, only: Collection[str] | None = None) -> list[str]:
    """Let queues and jobs go on that a change has stopped, also one that was interrupted.

    `only`: those of these paths (`Draining.held`). Returns the names of the queues.
    """
    for workload in _held(cluster, "workloads"):
        about = workload["metadata"]
        path = f"{API}/namespaces/{about['namespace']}/workloads/{about['name']}"
        if only is None or path in only:
            cluster.send("PATCH", path, _activity(active=True))
    resumed = []
    for queue in _held(cluster, "clusterqueues"):
        name, before = queue["metadata"]["name"], queue["metadata"]["annotations"][HELD]
        path = f"{API}/clusterqueues/{name}"
        body = {"metadata": {"annotations": {HELD: None}}, "spec": {"stopPolicy": before}}
        if (only is None or path in only) and cluster.send("PATCH", path, body).status in _OK:
            resumed.append(name)
    return resumed


def _held(cluster: ClusterApi, plural: str) -> list[Any]:
    """Objects that a change has stopped and that are not being deleted."""
    try:
        found = listed(cluster, f"{API}/{plural}")
    except ListRefusedError:
        return []
    return [
        one for one in found
        if HELD in (one["metadata"].get("annotations") or {}) and not one["metadata"].get("deletionTimestamp")
    ]  # fmt: skip


def _activity(*, active: bool) -> dict[str, Any]:
    note = None if active else "yes"
    return {"metadata": {"annotations": {HELD: note}}, "spec": {"active": active}}


def _denied(cluster: ClusterApi, what: str, answer: ApiResponse) -> UserError:
    rule = f"{cluster.server} does not allow it: {answer.code}: {answer.message}"
    fix = "Log in as an administrator of the cluster; repeat the command, which continues."
    return UserError([Problem(what, None, rule, fix, code="drain-denied")])
