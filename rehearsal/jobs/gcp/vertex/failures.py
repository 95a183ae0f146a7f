"""Failures of custom jobs: messages of the service, and the consequence of exit codes.

Source: Vertex AI documentation, "Understand the serverless training service" (restarts, retries, the table of
common errors), "Use Spot VMs with training" (preemption); GoogleCloudPlatform/vertex-ai-samples issue 1898
(codes and messages of jobs), GoogleCloudPlatform/stable-diffusion-on-gcp issue 12 (quota).
"""

from collections.abc import Collection
from enum import Enum, auto

from rehearsal.jobs.gcp.vertex.records import JobFailure

# Codes of google.rpc.Code.
CANCELLED_CODE, INVALID, EXHAUSTED, INTERNAL_CODE = 1, 3, 8, 13
RESTARTS_OF_A_WORKER, RETRIES, PREEMPTIONS = 5, 3, 6
_TRANSIENT = (6, 134, 11, 139)  # SIGABRT and SIGSEGV, as processes and as containers report them
_SIGNALLED = 128

INTERNAL = JobFailure(INTERNAL_CODE, "Internal error occurred for the current attempt.")
STOPPED = JobFailure(CANCELLED_CODE, "CANCELED")


class CustomJobError(Exception):
    """Ends the job in JOB_STATE_FAILED, with this reason."""

    def __init__(self, failure: JobFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class ExitConsequence(Enum):
    """Consequence of a worker that exits with a code other than 0."""

    FINAL = auto()
    """The job fails."""
    RETRIED = auto()
    """The whole job is retried."""
    RESTARTED = auto()
    """The worker restarts on its machine."""


def consequence(code: int, *, disable_retries: bool) -> ExitConsequence:
    """Consequence of an exit code: an exception in user code is final, and every exit without retries.

    Of the codes above 128, which stand for signals, the documentation lists SIGABRT and SIGSEGV; the others
    are "any error not listed".
    """
    if disable_retries or (code <= _SIGNALLED and code not in _TRANSIENT):
        return ExitConsequence.FINAL
    return ExitConsequence.RETRIED if code in _TRANSIENT else ExitConsequence.RESTARTED


def exited(replica: str, code: int) -> JobFailure:
    """A worker exited with a code other than 0."""
    message = f"The replica {replica} exited with a non-zero status of {code}. Termination reason: Error."
    return JobFailure(INVALID, message)


def no_resources(region: str) -> JobFailure:
    """Compute Engine has no such machines left."""
    fix = "Try a different region or use a different accelerator."
    return JobFailure(EXHAUSTED, f"Resources are insufficient in region: {region}. {fix}")


def over_quota(metrics: Collection[str]) -> str:
    """The job exceeds quotas of the project."""
    return f"The following quota metrics exceed quota limits: {', '.join(metrics)}"
