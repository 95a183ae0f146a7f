"""Seconds in which held GPUs worked, by DCGM; runs in a pod.

Kueue has the holders, Prometheus the activity of each GPU of a pod. Every few minutes the period since the
last query is queried once, minute by minute. A minute without a figure stays unknown.
"""

import datetime
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.gpu_ledger.attempts import Seen, Shares
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.row import Key
from agents.shared.api_server import ApiServer
from agents.shared.dcgm import SHARES, STEP_S, PodKey, Points, points
from agents.shared.jobs import RUNNING_PODS
from agents.shared.prometheus import over

QUERIES = tuple(f"avg_over_time({metric}[1m]){scale}" for metric, scale in SHARES)
EVERY_S = 300
# Samples arrive with their scrape, every half a minute, and a moment later.
BEHIND_S = 120
# Periods before stay unknown: pods are listed hardly longer than they run. It is far below any retention of
# Prometheus.
OLDEST_S = 3600
# Labels of a pod with the name of the queued object. A TrainJob's JobSet has the name of the TrainJob.
_JOBSET, _JOB = _NAMED_BY = ("jobset.sigs.k8s.io/jobset-name", "batch.kubernetes.io/job-name")
_LABELS = {"Job": _JOB, "JobSet": _JOBSET, "TrainJob": _JOBSET}
# Names in one selector, of 63 letters at most: far below the length of an address that servers accept.
_MOST_NAMES = 50

Object = Mapping[str, Any]
Amounts = tuple[int, int]
"""Device-seconds with a figure, and of these those in which the device worked."""


@dataclass(frozen=True)
class Span:
    """A period in which a Workload held devices; seconds since 1970."""

    start: int
    end: int | None
    """None while it goes on."""
    shares: Shares

    def held_s(self, begin: float, end: float) -> float:
        """Seconds of its overlap with a period."""
        return max(0.0, min(end, end if self.end is None else self.end) - max(begin, self.start))


@dataclass(frozen=True)
class GpuJob:
    """The periods of one Workload."""

    uid: str
    namespace: str
    project: str
    spans: tuple[Span, ...]
    """Observed attempts, in their order."""
    selects: tuple[str, str] = ("", "")
    """Label of its pods, and its value."""

    def ended_since(self, at: float) -> bool:
        """Return whether an attempt ended after a time."""
        return any(span.end is not None and span.end > at for span in self.spans)


def job_name(pod: Object) -> str:
    """The name of the pod's job, JobSet or TrainJob; its own name, if it has none."""
    labels = pod["metadata"].get("labels") or {}
    return str(next((labels[key] for key in _NAMED_BY if key in labels), pod["metadata"]["name"]))


def period(measured: int, now: int) -> tuple[int, int] | None:
    """The next whole minutes to query, as start and end; None while it is too early."""
    end = (now - BEHIND_S) // STEP_S * STEP_S
    begin = max(measured, end - OLDEST_S) // STEP_S * STEP_S
    return (begin, end) if end - begin >= EVERY_S else None


def booked(
    found: Mapping[tuple[PodKey, str], Points], jobs: Mapping[PodKey, GpuJob], after: int
) -> dict[Key, Amounts]:
    """Device-seconds by day, project, pool and resource, from points later than `after`.

    A point stands for the minute before it, for the part in which the job held its devices. Where a minute
    has figures of more devices than the job held (a pod that moved between nodes), each counts for less. Pods
    without a known job are left out, as are jobs on several pools: their points do not name the pool.
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


class GpuUsage:
    """Queries the activity of the GPUs of jobs and books it."""

    def __init__(self, server: ApiServer, prometheus: str | None) -> None:
        self._server, self._prometheus = server, prometheus
        self._jobs: dict[str, GpuJob] = {}
        """By UID."""
        self._names: dict[tuple[str, str], str] = {}
        """UID of the latest Workload, by namespace and name of the queued object."""
        self._pods: dict[PodKey, tuple[str, int]] = {}
        """UID of its Workload, and time of its last listing, of each pod."""
        self._gone: dict[str, int] = {}
        """Times of deletion of Workloads, by UID."""
        self._asked = 0

    def observe(self, workload: Object, state: Seen, measured: int = 0) -> None:
        """Record which devices a Workload holds in which period.

        One that was finished before the time `measured` has all its figures.
        """
        known = self._jobs.get(state.uid)
        past = known is None and state.finished is not None and state.finished <= measured - STEP_S
        if past or self._prometheus is None:
            return
        spans = known.spans if known else ()
        if state.admitted is None:
            spans = _ended(spans, state.released)
        elif state.asked and "admission" in (workload.get("status") or {}):
            before = _ended([span for span in spans if span.start < state.admitted], state.admitted)
            spans = (*before, Span(state.admitted, state.finished, state.asked))
        if spans:
            owners = workload["metadata"].get("ownerReferences") or []
            labels = [_LABELS[owner["kind"]] for owner in owners if owner.get("kind") in _LABELS]
            label = labels[0] if labels else ""
            selects = (label, str(owners[0]["name"])) if label else ("", "")
            self._jobs[state.uid] = GpuJob(state.uid, state.namespace, state.project, spans, selects)
            names = [*(str(owner["name"]) for owner in owners), state.name]
            self._names |= {(state.namespace, name): state.uid for name in names}

    def gone(self, uid: str, at: int) -> None:
        """A Workload was deleted at `at`; its last minutes are not queried yet."""
        if uid in self._jobs:
            self._jobs[uid] = replace(self._jobs[uid], spans=_ended(self._jobs[uid].spans, at))
            self._gone[uid] = at

    def only(self, namespace: str, existing: Collection[str], seen: int) -> None:
        """Workloads of a namespace other than these were deleted unobserved, after the time `seen`."""
        for job in list(self._jobs.values()):
            if job.namespace == namespace and job.uid not in existing and job.uid not in self._gone:
                self.gone(job.uid, seen)

    def book(self, books: Mapping[str, TeamBook], now: int) -> set[str]:
        """Book what is due; returns the namespaces of changed books.

        Raises PrometheusError, ApiServerError and OSError; then nothing is booked, and the query is repeated
        some minutes later.
        """
        # A clock that was ahead of `now` does not prevent a query.
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
        for namespace in due:
            unknown = [key[0] for key in found if key[0][0] == namespace and key[0] not in self._pods]
            if unknown:
                self._look_at_ended(namespace, unknown, begin, now)
        jobs = {pod: self._jobs[uid] for pod, (uid, _) in self._pods.items() if uid in self._jobs}
        for namespace, (after, until) in due.items():
            mine = {key: of_gpu for key, of_gpu in found.items() if key[0][0] == namespace}
            latest = max((at for of_gpu in mine.values() for at in of_gpu), default=0)
            books[namespace].measure(booked(mine, jobs, after), until, int(latest))
        # A book that was not due has the minutes of one period to query.
        self._forget(end - EVERY_S)
        return set(due)

    def _look_at_pods(self, namespaces: Collection[str], now: int) -> None:
        """Record the Workloads of pods: pods may be deleted before their figures are queried."""
        for namespace in {job.namespace for job in self._jobs.values()} & set(namespaces):
            self._look(namespace, now, fieldSelector=RUNNING_PODS)

    def _look_at_ended(self, namespace: str, pods: Iterable[PodKey], since: int, now: int) -> None:
        """Record the Workloads of pods with figures that ended since they were looked at.

        Only pods of jobs that ended since then are listed.
        """
        for pod in pods:
            # One without a job has the name of its Workload's owner.
            if pod in self._names:
                self._pods[pod] = self._names[pod], now
        names: dict[str, list[str]] = {}
        for job in self._jobs.values():
            if job.namespace == namespace and job.ended_since(since) and job.selects[0]:
                names.setdefault(job.selects[0], []).append(job.selects[1])
        for label, values in names.items():
            for start in range(0, len(values), _MOST_NAMES):
                some = ",".join(sorted(values)[start : start + _MOST_NAMES])
                self._look(namespace, now, labelSelector=f"{label} in ({some})")

    def _look(self, namespace: str, now: int, **selectors: str) -> None:
        for pod in self._server.every(f"/api/v1/namespaces/{namespace}/pods", **selectors):
            uid = self._names.get((namespace, job_name(pod)))
            if uid is not None:
                self._pods[namespace, str(pod["metadata"]["name"])] = uid, now

    def _forget(self, until: int) -> None:
        """Forget Workloads that ended before `until`: all their minutes are queried."""
        for uid in [uid for uid, at in self._gone.items() if at < until]:
            del self._gone[uid], self._jobs[uid]
        for uid, job in [*self._jobs.items()]:
            spans = tuple(span for span in job.spans if span.end is None or span.end >= until)
            if spans:
                self._jobs[uid] = replace(job, spans=spans)
            else:
                del self._jobs[uid]
        self._names = {key: uid for key, uid in self._names.items() if uid in self._jobs}
        self._pods = {
            pod: (uid, at)
            for pod, (uid, at) in self._pods.items()
            if uid in self._jobs and at >= until - OLDEST_S
        }


def _ended(spans: Iterable[Span], at: int | None) -> tuple[Span, ...]:
    """The spans, with open ones ended at `at`."""
    return tuple(span if span.end is not None else replace(span, end=at) for span in spans)
