"""Deadlines, retries and clean-up of jobs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies.catalog import CATALOG, Violation
from policies.resource import Resource
from policies.rules.kubernetes.objects import is_of_a_program, metadata, spec
from policies.rules.kubernetes.pods import TRAIN_JOB
from policies.stack import Stack

_JOB, _CRON_JOB = "kubernetes:batch/v1:Job", "kubernetes:batch/v1:CronJob"
_JOBSET = "kubernetes:jobset.x-k8s.io/v1alpha2:JobSet"
_OPERATOR = tuple(
    f"kubernetes:kubeflow.org/v1:{kind}"
    for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
)
_MPI, _RAY = "kubernetes:kubeflow.org/v2beta1:MPIJob", "kubernetes:ray.io/v1:RayJob"
# Kueue stops workloads that run longer (kueue.sigs.k8s.io, Setup Job maximum execution time).
_KUEUE_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"
KINDS = (_JOB, _CRON_JOB, _JOBSET, TRAIN_JOB, *_OPERATOR, _MPI, _RAY)
"""All kinds whose pods terminate by themselves."""
_DEFAULT_RETRIES = 6
"""Default of a Job (Kubernetes API Reference, JobSpec.backoffLimit)."""


@dataclass(frozen=True)
class Ends:
    """Settings for the end of a job: their path, and the default number of retries."""

    path: str
    settings: Mapping[str, Any]
    retries: int | None = _DEFAULT_RETRIES
    """None: unlimited."""
    has_retries: bool = True
    """False if this part of the object has no limit of retries."""


@CATALOG.rule_around(
    "MLS-K8S-06",
    "medium",
    KINDS,
    "A job that hangs holds its GPUs until it is noticed; one that cannot succeed, for each retry.",
    "Set activeDeadlineSeconds and backoffLimit; and ttlSecondsAfterFinished outside of a program.",
)
def jobs_end(job: Resource, stack: Stack) -> Iterator[Violation]:
    """A job has a deadline and few retries, and is deleted when it is finished."""
    labels = metadata(job).get("labels") or {}
    for ends in ends_of(job):
        if not ends.settings.get("activeDeadlineSeconds") and not labels.get(_KUEUE_SECONDS):
            yield Violation("it has no deadline", f"{ends.path}.activeDeadlineSeconds")
        if ends.has_retries:
            yield from _retries(ends, stack.settings.most_job_retries)
    yield from _lasting(job)


def _retries(ends: Ends, most: int) -> Iterator[Violation]:
    each = ends.settings.get("backoffLimitPerIndex")
    given = ends.settings.get("backoffLimit") if each is None else each
    retries = ends.retries if given is None else given
    if retries is None:
        yield Violation("its retries are unlimited", f"{ends.path}.backoffLimit")
    elif retries > most:
        default = "by default " if given is None else ""
        yield Violation(f"it has {default}{retries} retries, more than {most}", f"{ends.path}.backoffLimit")


def ends_of(job: Resource) -> Iterator[Ends]:
    """The settings of each part of a job of `KINDS`."""
    own = spec(job)
    if job.kind == _CRON_JOB:
        yield Ends("spec.jobTemplate.spec", (own.get("jobTemplate") or {}).get("spec") or {})
    elif job.kind == _JOBSET:
        # A JobSet has no deadline of its own (jobset_types.go): its jobs have.
        for index, made in enumerate(own.get("replicatedJobs") or ()):
            below = ((made or {}).get("template") or {}).get("spec") or {}
            yield Ends(f"spec.replicatedJobs[{index}].template.spec", below)
    elif job.kind == TRAIN_JOB:
        # Its runtime sets the retries.
        yield Ends("spec", own, has_retries=False)
    elif job.kind == _RAY:
        yield Ends("spec", own, retries=0)
    elif job.kind in _OPERATOR or job.kind == _MPI:
        retries = _DEFAULT_RETRIES if job.kind == _MPI else None
        yield Ends("spec.runPolicy", own.get("runPolicy") or {}, retries)
    else:
        yield Ends("spec", own)


def _lasting(job: Resource) -> Iterator[Violation]:
    """Jobs that stay after they are finished.

    A job of a program stays until its stack deletes it: if Kubernetes deleted it, the next refresh would
    find it missing and run it again. A CronJob keeps only the last few.
    """
    if job.origin != "live" or job.kind in (_CRON_JOB, TRAIN_JOB) or metadata(job).get("ownerReferences"):
        return
    if is_of_a_program(job):
        return
    below = "spec.runPolicy" if job.kind in _OPERATOR or job.kind == _MPI else "spec"
    limits = spec(job) if below == "spec" else spec(job).get("runPolicy") or {}
    if limits.get("ttlSecondsAfterFinished") is None:
        yield Violation("it is not deleted when it is finished", f"{below}.ttlSecondsAfterFinished")
