"""How many of the seconds that jobs held GPUs the GPUs worked, by DCGM; runs in a pod.

Kueue knows who held what, Prometheus what each GPU of a pod did. Every few minutes the period since the last
time is asked for once, minute by minute. A minute without a figure stays unknown.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from components.kubernetes.accounting.attempts import Seen, Shares
from components.kubernetes.accounting.ledger import Book
from components.kubernetes.accounting.row import Key
from components.kubernetes.programs.api_server import ApiServer
from components.kubernetes.programs.dcgm import SHARES, STEP_S, PodKey, Points, points
from components.kubernetes.programs.prometheus import over

QUERIES = tuple(f"avg_over_time({metric}[1m]){scale}" for metric, scale in SHARES)
EVERY_S = 300
# Samples come with their scrape, every half a minute, and a moment later.
BEHIND_S = 120
# What nobody asked for meanwhile stays unknown: pods are not listed much longer than they run.
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
class Job:
    """What one Workload holds, for whom."""

    uid: str
    project: str
    shares: Shares


def job_name(pod: Object) -> str:
    """The name of the job, JobSet, TrainJob or group that a pod is of; its own name, if it is of none."""
    labels = pod["metadata"].get("labels") or {}
    return str(next((labels[key] for key in _NAMED_BY if key in labels), pod["metadata"]["name"]))


def period(measured: int, now: int) -> tuple[int, int] | None:
    """The next whole minutes to ask for, as start and end; None while it is too early."""
    end = (now - BEHIND_S) // STEP_S * STEP_S
    # A clock that was far ahead is right again: what was asked for then, nobody had.
    begin = end - EVERY_S if measured > now + OLDEST_S else max(measured, end - OLDEST_S) // STEP_S * STEP_S
    return (begin, end) if end - begin >= EVERY_S else None


def booked(
    found: Mapping[tuple[PodKey, str], Points], jobs: Mapping[PodKey, Job], after: int
) -> dict[Key, Amounts]:
    """Device-seconds by day, project, pool and resource, from points later than `after`.

    A point stands for the minute before it. Pods of which no job is known are left out, as are jobs on
    several pools: their points do not say on which.
    """
    sums: dict[Key, list[float]] = {}
    for (pod, _), of_gpu in found.items():
        job = jobs.get(pod)
        if job is None or len(job.shares) != 1:
            continue
        (place,) = job.shares
        for at, share in of_gpu.items():
            if at > after:
                day = datetime.datetime.fromtimestamp(at - STEP_S, datetime.UTC).date().isoformat()
                row = sums.setdefault((day, job.project, *place), [0.0, 0.0])
                row[0] += STEP_S
                row[1] += STEP_S * min(share, 1.0)
    return {key: (round(measured), round(used)) for key, (measured, used) in sums.items()}


class Usage:
    """Asks Prometheus what the GPUs of jobs did, and books it."""

    def __init__(self, server: ApiServer, prometheus: str | None) -> None:
        self._server, self._prometheus = server, prometheus
        self._jobs: dict[PodKey, Job] = {}
        self._gone: dict[str, int] = {}
        """When Workloads were deleted, by UID."""
        self._next = 0

    def observe(self, workload: Object, said: Seen) -> None:
        """Remember what a Workload holds that was let in."""
        if said.asked and "admission" in (workload.get("status") or {}):
            metadata = workload["metadata"]
            names = [str(owner["name"]) for owner in metadata.get("ownerReferences") or ()]
            job = Job(said.uid, said.project, said.asked)
            # The Workload of a group of pods is called after the group.
            self._jobs |= {(said.namespace, name): job for name in [*names, said.name]}

    def gone(self, uid: str, now: int) -> None:
        """A Workload was deleted; its last minutes are not asked for yet."""
        self._gone[uid] = now

    def book(self, books: Mapping[str, Book], now: int) -> set[str]:
        """Book what is due; the namespaces whose books changed.

        Raises SilentError, RefusedError and OSError; then nothing is booked, and the same is asked for again
        some minutes later.
        """
        due = {name: period(book.measured, now) for name, book in books.items()}
        begin = min((row[0] for row in due.values() if row), default=None)
        if self._prometheus is None or begin is None or now < self._next:
            return set()
        self._next = now + EVERY_S // 2
        end = next(row[1] for row in due.values() if row)
        # The first point stands for the minute after the beginning.
        asked = [over(self._prometheus, query, begin + STEP_S, end, STEP_S) for query in QUERIES]
        found, changed = points(asked), set[str]()
        for namespace, row in due.items():
            if row:
                mine = {key: of_gpu for key, of_gpu in found.items() if key[0][0] == namespace}
                jobs = dict(self._of_pods(namespace)) if mine else {}
                books[namespace].measure(booked(mine, jobs, row[0]), row[1])
                changed.add(namespace)
        self._forget(end)
        return changed

    def _of_pods(self, namespace: str) -> Iterator[tuple[PodKey, Job]]:
        pods: Iterable[Object] = self._server.listed(f"/api/v1/namespaces/{namespace}/pods")[0]
        for pod in pods:
            job = self._jobs.get((namespace, job_name(pod)))
            if job is not None:
                yield (namespace, str(pod["metadata"]["name"])), job

    def _forget(self, until: int) -> None:
        """Forget deleted Workloads of which all minutes are asked for."""
        over_ = {uid for uid, at in self._gone.items() if at < until}
        self._jobs = {key: job for key, job in self._jobs.items() if job.uid not in over_}
        self._gone = {uid: at for uid, at in self._gone.items() if uid not in over_}
