"""Positions of waiting jobs, in the order of Kueue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainstack.queues.state import Job, State


@dataclass(frozen=True)
class Place:
    """The position of a job in its ClusterQueue."""

    number: int
    """From 1."""
    reported: bool
    """Kueue reports it; else it is likely by priority and age."""


def places(state: State) -> Mapping[tuple[str, str], Place]:
    """The place of every job that waits for quota, by the job's identity.

    Kueue reports it for queues that are not stopped (visibility.kueue.x-k8s.io). For the others it is by
    priority, then age (kubernetes-sigs/kueue v0.19.2 pkg/workload/workload.go, `Ordering`; an evicted job may
    stand elsewhere), among the jobs that can be seen.
    """
    found: dict[tuple[str, str], Place] = {}
    for jobs in queues(state).values():
        for index, job in enumerate(jobs):
            place = state.places.get(job.key)
            number = index if place is None else place
            found[job.key] = Place(number + 1, reported=place is not None)
    return found


def queues(state: State) -> Mapping[str, Sequence[Job]]:
    """The jobs that wait in each ClusterQueue, in their order."""
    found: dict[str, list[Job]] = {}
    for job in state.jobs:
        if job.queued:
            found.setdefault(job.cluster_queue, []).append(job)
    return {name: sorted(jobs, key=lambda job: _turn(job, state)) for name, jobs in sorted(found.items())}


def _turn(job: Job, state: State) -> tuple[bool, int, int, float, tuple[str, str]]:
    """Jobs with a reported position, then the others, then by name: the same for every listing."""
    place = state.places.get(job.key)
    return place is None, place or 0, -job.priority, job.created.timestamp(), job.key
