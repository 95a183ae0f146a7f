"""In which order jobs wait, as Kueue has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainstack.queues.state import Job, State


@dataclass(frozen=True)
class Place:
    """Where a job stands in its ClusterQueue."""

    number: int
    """From 1."""
    told: bool
    """Whether Kueue said so; else it is what priority and age make likely."""


def places(state: State) -> Mapping[tuple[str, str], Place]:
    """The place of every job that waits for quota, by the job's identity.

    Kueue tells it for queues that are not stopped (visibility.kueue.x-k8s.io). For the others it is by
    priority, then age (kubernetes-sigs/kueue v0.19.2 pkg/workload/workload.go, `Ordering`; an evicted job may
    stand elsewhere), among the jobs that can be seen.
    """
    found: dict[tuple[str, str], Place] = {}
    for jobs in queues(state).values():
        for index, job in enumerate(jobs):
            told = state.places.get(job.key)
            found[job.key] = Place(index + 1, told=False) if told is None else Place(told + 1, told=True)
    return found


def queues(state: State) -> Mapping[str, Sequence[Job]]:
    """The jobs that wait in each ClusterQueue, in their order."""
    found: dict[str, list[Job]] = {}
    for job in state.jobs:
        if job.queued:
            found.setdefault(job.cluster_queue, []).append(job)
    return {name: sorted(jobs, key=lambda job: _turn(job, state)) for name, jobs in sorted(found.items())}


def _turn(job: Job, state: State) -> tuple[bool, int, int, float, tuple[str, str]]:
    """Jobs that Kueue named in its order, then the others, then by name: the same for every listing."""
    told = state.places.get(job.key)
    return told is None, told or 0, -job.priority, job.created.timestamp(), job.key
