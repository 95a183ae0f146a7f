"""Past waits, by classes of jobs that wait alike: those that the cluster still knows; nothing else is kept.

A Workload goes with its Job, so a Job's `ttlSecondsAfterFinished` is how long its wait is remembered.
"""

from collections.abc import Iterable, Mapping, Sequence

from trainstack.queues.bound import Wait
from trainstack.queues.state import Job

Kind = tuple[str, int]
"""A ClusterQueue, and the most GPUs that jobs of the class have."""


def kind(job: Job) -> Kind:
    """The class of a job: its queue, and its GPUs rounded up to a power of two (0 for none)."""
    return job.cluster_queue, 1 << (job.gpus - 1).bit_length() if job.gpus else 0


def waits(jobs: Iterable[Job]) -> Mapping[Kind, Sequence[Wait]]:
    """What jobs of each class waited, or wait, from submission to admission.

    Jobs that were evicted are left out: they waited several times, and their objects tell the last time.
    """
    found: dict[Kind, list[Wait]] = {}
    for job in jobs:
        if job.evictions or not job.active:
            continue
        if job.is_("Admitted"):
            waited = job.conditions["Admitted"].since - job.created
            found.setdefault(kind(job), []).append(Wait(job.created, waited))
        elif not job.finished:
            found.setdefault(kind(job), []).append(Wait(job.created, None))
    return found
