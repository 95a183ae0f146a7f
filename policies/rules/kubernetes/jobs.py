"""How a job ends."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies.catalogue import CATALOGUE, About, Violation
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
# Kueue ends what runs for longer (kueue.sigs.k8s.io, Setup Job maximum execution time).
_KUEUE_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"
KINDS = (_JOB, _CRON_JOB, _JOBSET, TRAIN_JOB, *_OPERATOR, _MPI, _RAY)
"""Every kind whose pods end by themselves."""
_DEFAULT_RETRIES = 6
"""Of a Job that does not say (Kubernetes API Reference, JobSpec.backoffLimit)."""


@dataclass(frozen=True)
class Ends:
    """What says when a job ends: where it says so, and the number of retries without a word."""

    path: str
    says: Mapping[str, Any]
    retries: int | None = _DEFAULT_RETRIES
    """None: without end."""
    has_retries: bool = True
    """Whether this part of the object has a limit of retries at all."""


@CATALOGUE.rule_around(
    About(
        "MLS-K8S-06",
        "medium",
        KINDS,
        "A job that hangs holds its GPUs until somebody looks; one that cannot succeed, for each try.",
        "Set activeDeadlineSeconds and backoffLimit; and ttlSecondsAfterFinished where nobody deletes it.",
    )
)
def jobs_end(job: Resource, stack: Stack) -> Iterator[Violation]:
    """A job has a deadline and few retries, and goes when it is done."""
    labels = metadata(job).get("labels") or {}
    for ends in ends_of(job):
        if not ends.says.get("activeDeadlineSeconds") and not labels.get(_KUEUE_SECONDS):
            yield Violation("it has no deadline", f"{ends.path}.activeDeadlineSeconds")
        if ends.has_retries:
            yield from _retries(ends, stack.settings.most_job_retries)
    yield from _lasting(job)


def _retries(ends: Ends, most: int) -> Iterator[Violation]:
    each = ends.says.get("backoffLimitPerIndex")
    given = ends.says.get("backoffLimit") if each is None else each
    retries = ends.retries if given is None else given
    if retries is None:
        yield Violation("it is tried again without end", f"{ends.path}.backoffLimit")
    elif retries > most:
        whose = "by default " if given is None else ""
        yield Violation(f"it is {whose}tried {retries} times again, not {most}", f"{ends.path}.backoffLimit")


def ends_of(job: Resource) -> Iterator[Ends]:
    """Each part of a job of `KINDS` that says when it ends."""
    own = spec(job)
    if job.kind == _CRON_JOB:
        yield Ends("spec.jobTemplate.spec", (own.get("jobTemplate") or {}).get("spec") or {})
    elif job.kind == _JOBSET:
        # A JobSet has no deadline of its own (jobset_types.go): the jobs that it makes have.
        for index, made in enumerate(own.get("replicatedJobs") or ()):
            below = ((made or {}).get("template") or {}).get("spec") or {}
            yield Ends(f"spec.replicatedJobs[{index}].template.spec", below)
    elif job.kind == TRAIN_JOB:
        # Retries are those of its runtime.
        yield Ends("spec", own, has_retries=False)
    elif job.kind == _RAY:
        yield Ends("spec", own, retries=0)
    elif job.kind in _OPERATOR or job.kind == _MPI:
        retries = _DEFAULT_RETRIES if job.kind == _MPI else None
        yield Ends("spec.runPolicy", own.get("runPolicy") or {}, retries)
    else:
        yield Ends("spec", own)


def _lasting(job: Resource) -> Iterator[Violation]:
    """What stays when it is done.

    A job of a program stays with its stack, which deletes it: where Kubernetes does, the next refresh
    finds it gone and runs it again. A CronJob keeps the last few by itself.
    """
    if job.origin != "live" or job.kind in (_CRON_JOB, TRAIN_JOB) or metadata(job).get("ownerReferences"):
        return
    if is_of_a_program(job):
        return
    below = "spec.runPolicy" if job.kind in _OPERATOR or job.kind == _MPI else "spec"
    says = spec(job) if below == "spec" else spec(job).get("runPolicy") or {}
    if says.get("ttlSecondsAfterFinished") is None:
        yield Violation("it stays when it is done", f"{below}.ttlSecondsAfterFinished")
