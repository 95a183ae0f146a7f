"""When jobs start if nobody else comes, nobody is stopped, and each job runs until its deadline.

Slurm's backfill scheduler and PBS estimate in the same way from time limits (slurm.schedmd.com/squeue.html,
`--start`). Nodes are not looked at, only quota; a job without a deadline holds what it has for ever.
"""

import datetime
import heapq
from collections.abc import Mapping, Sequence

from infra.queue.matching import candidates
from infra.queue.positions import queues
from infra.queue.quotas import Ledger
from infra.queue.state import ClusterQueue, FlavorAmounts, Job, State

Starts = Mapping[tuple[str, str], datetime.datetime | None]
"""The start of each job that waits, by its identity; None where the deadlines that are known lead to none."""


def starts(state: State) -> Starts | None:
    """The simulated start of every job that waits for quota; None where not all jobs and queues are seen."""
    if not state.whole or state.cluster_queues is None or state.flavors is None:
        return None
    return _Run(state, state.cluster_queues).finish()


class _Run:
    """The queues as time goes on."""

    def __init__(self, state: State, known: Mapping[str, ClusterQueue]) -> None:
        self._state, self._known = state, known
        self._ledger = Ledger(known, state.shared)
        # Queues say what is reserved; so do jobs, and both were not read at the same instant.
        self._ledger.used = {}
        self._ends: list[tuple[datetime.datetime, tuple[str, str], str, FlavorAmounts]] = []
        for job in state.jobs:
            if job.holding:
                self._ledger.take(job.cluster_queue, job.assigned)
                if job.deadline is not None:
                    self._ends_at(job, job.cluster_queue, max(job.deadline, state.taken), job.assigned)
        self._stopped = {(one.namespace, one.name) for one in state.local_queues if one.stopped}
        self._waiting = {
            name: [job for job in jobs if self._can_wait(job)]
            for name, jobs in queues(state).items()
            if name in known and not known[name].stopped
        }
        self._found: dict[tuple[str, str], datetime.datetime | None] = {
            job.key: None for job in state.jobs if job.queued
        }

    def _can_wait(self, job: Job) -> bool:
        return job.active and (job.namespace, job.local_queue) not in self._stopped

    def finish(self) -> Starts:
        now = self._state.taken
        self._admit(now)
        while self._ends and any(self._waiting.values()):
            now = self._ends[0][0]
            while self._ends and self._ends[0][0] == now:
                _, _, queue, amounts = heapq.heappop(self._ends)
                self._ledger.take(queue, amounts, -1)
            self._admit(now)
        return self._found

    def _admit(self, now: datetime.datetime) -> None:
        """Admit jobs until none fits; the one whose queue borrows least goes first, then by rank and age.

        Source: kubernetes-sigs/kueue v0.19.2 pkg/scheduler/fair_sharing_iterator.go.
        """
        while True:
            found = [one for name in self._waiting if (one := self._first(self._known[name]))]
            if not found:
                return
            job, amounts = min(found, key=self._rank)
            queue = job.cluster_queue
            self._waiting[queue].remove(job)
            self._ledger.take(queue, amounts)
            self._found[job.key] = max(now, job.requeued_at or now)
            if job.longest is not None:
                self._ends_at(job, queue, now + job.longest, amounts)

    def _rank(self, one: tuple[Job, FlavorAmounts]) -> tuple[object, ...]:
        job, amounts = one
        share = self._ledger.share(self._known[job.cluster_queue], amounts)
        return share, -job.priority, job.created, job.key

    def _first(self, queue: ClusterQueue) -> tuple[Job, FlavorAmounts] | None:
        """The first job of a queue that fits, with what it would be given."""
        waiting: Sequence[Job] = self._waiting[queue.name]
        for job in waiting[:1] if queue.strict else waiting:
            total = job.total
            for flavor in candidates(job, queue, self._state.flavors or {}):
                if self._ledger.fits(queue, flavor, total):
                    return job, {
                        (flavor, name): amount
                        for name, amount in total.items()
                        if (flavor, name) in queue.quotas
                    }
        return None

    def _ends_at(self, job: Job, queue: str, end: datetime.datetime, amounts: FlavorAmounts) -> None:
        heapq.heappush(self._ends, (end, job.key, queue, amounts))
