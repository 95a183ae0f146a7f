"""How many of the seconds that jobs held GPUs the GPUs worked, by DCGM; runs in a pod.

Kueue knows who held what, Prometheus what each GPU of a pod did. Every few minutes the period since the last
time is asked for once, minute by minute. A minute without a figure stays unknown.
"""

import datetime
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.gpu_ledger.attempts import Seen, Shares
from agents.gpu_ledger.ledger import Book
from agents.gpu_ledger.row import Key
from agents.shared.api_server import ApiServer
from agents.shared.dcgm import SHARES, STEP_S, PodKey, Points, points
from agents.shared.prometheus import over

QUERIES = tuple(f"avg_over_time({metric}[1m]){scale}" for metric, scale in SHARES)
EVERY_S = 300
# Samples come with their scrape, every half a minute, and a moment later.
BEHIND_S = 120
# What nobody asked for meanwhile stays unknown: pods are not listed much longer than they run. It is far
# below any retention of Prometheus.
OLDEST_S = 3600
# Labels of a pod with the name of what Kueue queued. A TrainJob's JobSet has the name of the TrainJob.
_NAMED_BY = (
    "kueue.x-k8s.io/pod-group-name",
    "jobset.sigs.k8s.io/jobset-name",
    "batch.kubernetes.io/job-name",
)

Object = Mapping[str, Any]
Amounts = tuple[int, int]
"""Device-seconds with a figure, and of these those in which the device worked."""


@dataclass(frozen=True)
class Span:
    """A stretch of time in which a Workload held devices; seconds since 1970."""

    start: int
    end: int | None
    """None while it goes on."""
    shares: Shares

    def held_s(self, begin: float, end: float) -> float:
        """Seconds between two times that lie in it."""
        return max(0.0, min(end, end if self.end is None else self.end) - max(begin, self.start))


@dataclass(frozen=True)
class Job:
    """What one Workload held, for whom."""

    uid: str
    namespace: str
    project: str
    spans: tuple[Span, ...]
    """Attempts that were seen, in their order."""


def job_name(pod: Object) -> str:
    """The name of the job, JobSet, TrainJob or group that a pod is of; its own name, if it is of none."""
    labels = pod["metadata"].get("labels") or {}
    return str(next((labels[key] for key in _NAMED_BY if key in labels), pod["metadata"]["name"]))


def period(measured: int, now: int) -> tuple[int, int] | None:
    """The next whole minutes to ask for, as start and end; None while it is too early."""
    end = (now - BEHIND_S) // STEP_S * STEP_S
    begin = max(measured, end - OLDEST_S) // STEP_S * STEP_S
    return (begin, end) if end - begin >= EVERY_S else None


def booked(
    found: Mapping[tuple[PodKey, str], Points], jobs: Mapping[PodKey, Job], after: int
) -> dict[Key, Amounts]:
    """Device-seconds by day, project, pool and resource, from points later than `after`.

    A point stands for the minute before it, as far as the job held its devices in it. Where a minute has
    figures of more devices than the job held (a pod that moved from node to node), each counts for less. Pods
    of which no job is known are left out, as are jobs on several pools: their points do not say on which.
    """
    minutes: dict[tuple[str, float], list[float]] = {}
    for (pod, _), of_gpu in found.items():
        if pod in jobs:
            for at, share in of_gpu.items():
                if at > after:
                    minutes.setdefault((jobs[pod].uid, at), []).append(min(share, 1.0))
    by_uid = {job.uid: job for job in jobs.values()}
    sums: dict[Key, list[float]] = {}
    for (uid, at), shares in minutes.items():
        day = datetime.datetime.fromtimestamp(at - STEP_S, datetime.UTC).date().isoformat()
        for span in by_uid[uid].spans:
            held_s = span.held_s(at - STEP_S, at)
            if held_s and len(span.shares) == 1:
                ((place, devices),) = span.shares.items()
                each_s = held_s * min(1.0, devices / len(shares))
                row = sums.setdefault((day, by_uid[uid].project, *place), [0.0, 0.0])
                row[0] += each_s * len(shares)
                row[1] += each_s * sum(shares)
    return {key: (round(measured), round(used)) for key, (measured, used) in sums.items()}


class Usage:
    """Asks Prometheus what the GPUs of jobs did, and books it."""

    def __init__(self, server: ApiServer, prometheus: str | None) -> None:
        self._server, self._prometheus = server, prometheus
        self._jobs: dict[str, Job] = {}
        """By UID."""
        self._names: dict[tuple[str, str], str] = {}
        """UID of the latest Workload, by namespace and name of what Kueue queued."""
        self._pods: dict[PodKey, tuple[str, int]] = {}
        """UID of its Workload, and when it was listed last, of each pod."""
        self._gone: dict[str, int] = {}
        """When Workloads were deleted, by UID."""
        self._asked = 0

    def observe(self, workload: Object, said: Seen) -> None:
        """Remember from when to when a Workload holds what."""
        known = self._jobs.get(said.uid)
        spans = known.spans if known else ()
        if said.admitted is None:
            spans = _ended(spans, said.released)
        elif said.asked and "admission" in (workload.get("status") or {}):
            before = _ended([span for span in spans if span.start < said.admitted], said.admitted)
            spans = (*before, Span(said.admitted, said.finished, said.asked))
        if spans:
            self._jobs[said.uid] = Job(said.uid, said.namespace, said.project, spans)
            owners = workload["metadata"].get("ownerReferences") or ()
            # The Workload of a group of pods is called after the group.
            names = [*(str(owner["name"]) for owner in owners), said.name]
            self._names |= {(said.namespace, name): said.uid for name in names}

    def gone(self, uid: str, at: int) -> None:
        """A Workload was deleted then; its last minutes are not asked for yet."""
        if uid in self._jobs:
            self._jobs[uid] = replace(self._jobs[uid], spans=_ended(self._jobs[uid].spans, at))
            self._gone[uid] = at

    def only(self, namespace: str, existing: Collection[str], seen: int) -> None:
        """Other Workloads of a namespace than these were deleted unseen, after the time `seen`."""
        for job in list(self._jobs.values()):
            if job.namespace == namespace and job.uid not in existing and job.uid not in self._gone:
                self.gone(job.uid, seen)

    def book(self, books: Mapping[str, Book], now: int) -> set[str]:
        """Book what is due; the namespaces whose books changed.

        Raises SilentError, RefusedError and OSError; then nothing is booked, and the same is asked for again
        some minutes later.
        """
        # A clock that was ahead of `now` does not keep it from asking.
        if self._prometheus is None or 0 <= now - self._asked < EVERY_S // 2:
            return set()
        for book in books.values():
            book.look_back(now)
        due = {name: row for name, book in books.items() if (row := period(book.measured, now))}
        if not due:
            return set()
        self._asked = now
        self._look_at_pods(due, now)
        begin, end = min(row[0] for row in due.values()), max(row[1] for row in due.values())
        # The first point stands for the minute after the beginning.
        asked = [over(self._prometheus, query, begin + STEP_S, end, STEP_S) for query in QUERIES]
        found = points(asked)
        jobs = {pod: self._jobs[uid] for pod, (uid, _) in self._pods.items() if uid in self._jobs}
        for namespace, (after, until) in due.items():
            mine = {key: of_gpu for key, of_gpu in found.items() if key[0][0] == namespace}
            latest = max((at for of_gpu in mine.values() for at in of_gpu), default=0)
            books[namespace].measure(booked(mine, jobs, after), until, int(latest))
        # A book that was not due has the minutes of one period to ask for.
        self._forget(end - EVERY_S)
        return set(due)

    def _look_at_pods(self, namespaces: Collection[str], now: int) -> None:
        """Remember which Workload pods are of: they may be deleted before their figures are asked for."""
        for namespace in {job.namespace for job in self._jobs.values()} & set(namespaces):
            for pod in self._server.every(f"/api/v1/namespaces/{namespace}/pods"):
                uid = self._names.get((namespace, job_name(pod)))
                if uid is not None:
                    self._pods[namespace, str(pod["metadata"]["name"])] = uid, now

    def _forget(self, until: int) -> None:
        """Forget what was over before: all its minutes are asked for."""
        for uid in [uid for uid, at in self._gone.items() if at < until]:
            del self._gone[uid], self._jobs[uid]
        for uid, job in self._jobs.items():
            spans = tuple(span for span in job.spans if span.end is None or span.end >= until)
            # The last one tells a Workload that ended from one that was never let in.
            self._jobs[uid] = replace(job, spans=spans or job.spans[-1:])
        self._names = {key: uid for key, uid in self._names.items() if uid in self._jobs}
        self._pods = {
            pod: (uid, at)
            for pod, (uid, at) in self._pods.items()
            if uid in self._jobs and at >= until - OLDEST_S
        }


def _ended(spans: Iterable[Span], at: int | None) -> tuple[Span, ...]:
    """The stretches, of which those that went on ended then."""
    return tuple(span if span.end is not None else replace(span, end=at) for span in spans)
