"""Simulated starts of jobs, without new jobs or preemptions; each job runs until its deadline.

Slurm's backfill scheduler and PBS estimate in the same way from time limits (slurm.schedmd.com/squeue.html,
`--start`). Only quota is simulated, not nodes; a job without a deadline never ends.
"""

import datetime
import heapq
from collections.abc import Mapping

from trainstack.queues.matching import candidates
from trainstack.queues.positions import queues
from trainstack.queues.quotas import QuotaLedger
from trainstack.queues.state import ClusterQueue, Flavor, FlavorAmounts, Job, Moment, State

Starts = Mapping[tuple[str, str], Moment | None]
"""The start of each job that waits, by its identity; None where the known deadlines lead to none."""


def starts(state: State) -> Starts | None:
    """The simulated start of every job that waits for quota; None where some jobs or queues are hidden."""
    if not state.whole or state.cluster_queues is None or state.flavors is None:
        return None
    return _Simulation(state, state.cluster_queues, state.flavors).finish()


class _Simulation:
    def __init__(
        self, state: State, known: Mapping[str, ClusterQueue], flavors: Mapping[str, Flavor]
    ) -> None:
        self._now, self._known = state.taken, known
        self._ledger = QuotaLedger(known, state.shared)
        self._ends: list[tuple[Moment, tuple[str, str], str, FlavorAmounts]] = []
        for job in state.jobs:
            if job.holding and job.cluster_queue in known:
                self._start(job, job.assigned, job.deadline and max(job.deadline, state.taken))
        stopped = {(one.namespace, one.name) for one in state.local_queues if one.stopped}
        self._waiting: dict[str, list[tuple[Job, list[FlavorAmounts]]]] = {
            name: [
                (job, list(_choices(job, known[name], flavors)))
                for job in jobs
                if job.active and (job.namespace, job.local_queue) not in stopped
            ]
            for name, jobs in queues(state).items()
            if name in known and not known[name].stopped
        }
        self._found: dict[tuple[str, str], datetime.datetime | None] = {
            job.key: None for job in state.jobs if job.queued
        }

    def finish(self) -> Starts:
        """End and start jobs until no further end is known, or no job waits."""
        self._admit()
        while self._ends and any(self._waiting.values()):
            self._now = self._ends[0][0]
            while self._ends and self._ends[0][0] == self._now:
                _, _, queue, amounts = heapq.heappop(self._ends)
                self._ledger.take(self._known[queue], amounts, -1)
            self._admit()
        return self._found

    def _start(self, job: Job, amounts: FlavorAmounts, end: Moment | None) -> None:
        self._ledger.take(self._known[job.cluster_queue], amounts)
        if end is not None:
            heapq.heappush(self._ends, (end, job.key, job.cluster_queue, amounts))

    def _admit(self) -> None:
        """Admit jobs until none fits; the one whose queue borrows least goes first, then by rank and age.

        Source: kubernetes-sigs/kueue v0.19.2 pkg/scheduler/fair_sharing_iterator.go, `less`.
        """
        # A job that did not fit does not fit before another job ends.
        refused: set[tuple[str, str]] = set()
        while True:
            found = [one for name in self._waiting if (one := self._first(self._known[name], refused))]
            if not found:
                return
            index, job, amounts = min(found, key=self._rank)
            del self._waiting[job.cluster_queue][index]
            begins = max(self._now, job.requeued_at or self._now)
            self._found[job.key] = begins
            self._start(job, amounts, begins + job.longest if job.longest else None)

    def _rank(self, one: tuple[int, Job, FlavorAmounts]) -> tuple[object, ...]:
        _, job, amounts = one
        queue = self._known[job.cluster_queue]
        return self._ledger.share(queue, amounts), -job.priority, job.created, job.key

    def _first(
        self, queue: ClusterQueue, refused: set[tuple[str, str]]
    ) -> tuple[int, Job, FlavorAmounts] | None:
        waiting = self._waiting[queue.name]
        for index, (job, choices) in enumerate(waiting[:1] if queue.strict else waiting):
            if job.key in refused:
                continue
            for amounts in choices:
                if all(amount <= self._ledger.free(queue, *key) for key, amount in amounts.items()):
                    return index, job, amounts
            refused.add(job.key)
        return None


def _choices(job: Job, queue: ClusterQueue, flavors: Mapping[str, Flavor]) -> list[FlavorAmounts]:
    """The amounts of a job in each possible flavor, in the order in which it tries them."""
    total = job.total
    return [
        {(name, key): amount for key, amount in total.items() if amount and (name, key) in queue.quotas}
        for name in candidates(job, queue, flavors)
    ]
