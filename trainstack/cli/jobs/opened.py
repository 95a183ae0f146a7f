"""A deployed stack of managed jobs, with its service."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from infra.errors import Problem, UserError
from infra.jobs.following import LOOK_S
from infra.jobs.service_part import RunService
from infra.outputs import jobs as job_outputs
from infra.outputs import slurm as slurm_outputs
from infra.outputs.cluster import KEY
from infra.outputs.jobs import JobOutputs
from rehearsal.client import Rehearsal
from rehearsal.core import faults as rehearsal_faults
from trainstack.cli.operations.job_service import job_service
from trainstack.cli.operations.session import not_deployed, only_slurm, open_engine, refuse_rehearsed

# Emulated requests are free, and emulated jobs take seconds.
_REHEARSED_LOOK_S = 0.3


@dataclass(frozen=True)
class Opened:
    """A stack and the service of its jobs."""

    outputs: JobOutputs
    service: RunService
    rehearsal: Rehearsal | None

    @property
    def look_s(self) -> float:
        """Seconds between two requests for the state of a run."""
        return LOOK_S if self.rehearsal is None else _REHEARSED_LOOK_S

    @property
    def flags(self) -> str:
        """The options that name the stack in a command."""
        return f"-s {self.outputs.stack}{' --rehearse' if self.rehearsal else ''}"


@contextmanager
def opened(stack: str, *, rehearse: bool, faults: Sequence[str] = ()) -> Iterator[Opened]:
    """A stack and its service, within the block.

    Only the outputs of the deployed stack are read: a stack file that is invalid by now prevents nothing.
    Raises UserError for a stack that is not deployed or has a cluster instead, and without a login.
    """
    if not rehearse:
        refuse_rehearsed({"--fault": ", ".join(faults)})
    parsed = rehearsal_faults.parse(faults, None)
    engine, rehearsal = open_engine(stack, rehearse=rehearse)
    found = {key: output.value for key, output in engine.outputs().items()}
    outputs = read(stack, found, rehearse=rehearse)
    if rehearsal is not None:
        rehearsal.set_faults(parsed.model_dump(mode="json", exclude_none=True) if faults else {})
    with job_service(outputs, rehearsal) as service:
        yield Opened(outputs, service, rehearsal)


def read(stack: str, found: Mapping[str, object], *, rehearse: bool) -> JobOutputs:
    """The record in the outputs of a stack. Raises UserError where there is none, or one of a cluster."""
    record = found.get(KEY)
    if not isinstance(record, Mapping):
        raise not_deployed(stack, rehearse=rehearse)
    if slurm_outputs.is_of_slurm(found):
        raise UserError([only_slurm(stack, rehearse=rehearse)])
    if not job_outputs.is_of_jobs(found):
        rule = "has a cluster, whose jobs are objects of Kubernetes, and no managed jobs"
        fix = (
            "`trainstack smoke render --for jobset` writes one, kubectl starts it "
            f"(`trainstack kubeconfig -s {stack}`), and `trainstack queue -s {stack}` shows it."
        )
        raise UserError([Problem("stack", stack, rule, fix, code="stack-has-cluster")])
    return job_outputs.parse(found)
