"""Past waits by classes of similar jobs, from the Workloads that still exist in the cluster.

A Workload is deleted with its Job, or a week after its end (`kueue_values.WORKLOADS_KEPT`).
"""

from collections.abc import Iterable, Mapping, Sequence

from trainstack.queues.bound import Wait
from trainstack.queues.state import Job

Kind = tuple[str, int]
"""A ClusterQueue, and the upper limit of GPUs of the class."""


def kind(job: Job) -> Kind:
    """The class of a job: its queue, and its GPUs rounded up to a power of two (0 for none)."""
    return job.cluster_queue, 1 << (job.gpus - 1).bit_length() if job.gpus else 0


def waits(jobs: Iterable[Job]) -> Mapping[Kind, Sequence[Wait]]:
    """The waits of each class from submission to admission; also of jobs that still wait.

    Jobs that were evicted are left out: they waited several times, and their objects have only the last one.
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
