"""A deployed stack of managed jobs, with its service."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from infra.clouds.aws.login import LOG_IN, LoggedOutError, clients
from infra.errors import Problem, UserError
from infra.jobs.aws.service import SageMakerService
from infra.jobs.following import LOOK_S
from infra.jobs.gcp.prices import spot_share
from infra.jobs.gcp.service import VertexService
from infra.jobs.roles import account_of
from infra.jobs.service import JobService
from infra.outputs import jobs as job_outputs
from infra.outputs.cluster import KEY
from infra.outputs.jobs import JobOutputs
from rehearsal import isolation
from rehearsal.client import Rehearsal
from trainstack.cli.session import open_session

# Here a look costs nothing, and jobs take seconds.
_REHEARSED_LOOK_S = 0.3


@dataclass(frozen=True)
class Opened:
    """A stack whose jobs can be asked about."""

    outputs: JobOutputs
    service: JobService
    rehearsal: Rehearsal | None

    @property
    def look_s(self) -> float:
        """How often a run that goes on is looked at, in seconds."""
        return LOOK_S if self.rehearsal is None else _REHEARSED_LOOK_S

    @property
    def flags(self) -> str:
        """What names the stack in a command."""
        return f"-s {self.outputs.stack}{' --rehearse' if self.rehearsal else ''}"


@contextmanager
def opened(stack: str, *, rehearse: bool, faults: Sequence[str] = ()) -> Iterator[Opened]:
    """The stack and its service, as long as the block goes on.

    Raises UserError for a stack that is not deployed, has a cluster instead, or when nobody is logged in.
    """
    session = open_session(stack, rehearse=rehearse, faults=faults)
    found = {key: output.value for key, output in session.engine.outputs().items()}
    outputs = read(stack, found, rehearse=rehearse)
    if session.rehearsal is None:
        yield Opened(outputs, service_of(outputs), None)
        return
    session.rehearsal.set_faults(session.faults.model_dump(mode="json", exclude_none=True) if faults else {})
    with session.rehearsal.serving() as environment, led_to(environment):
        yield Opened(outputs, service_of(outputs), session.rehearsal)


def read(stack: str, found: Mapping[str, object], *, rehearse: bool) -> JobOutputs:
    """The record in the outputs of a stack. Raises UserError where there is none, or one of a cluster."""
    record = found.get(KEY)
    if not isinstance(record, Mapping):
        flag, where = (" --rehearse", " in the rehearsal") if rehearse else ("", "")
        fix = f"Run `trainstack up -s {stack}{flag}` first."
        raise UserError([Problem("stack", stack, f"nothing is deployed{where}", fix)])
    if not job_outputs.is_of_jobs(found):
        rule = "has a cluster, whose jobs are objects of Kubernetes, and no managed jobs"
        fix = (
            "`trainstack smoke render --for jobset` writes one, kubectl starts it "
            f"(`trainstack kubeconfig -s {stack}`), and `trainstack queue -s {stack}` shows it."
        )
        raise UserError([Problem("stack", stack, rule, fix)])
    return job_outputs.parse(found)


def service_of(outputs: JobOutputs) -> JobService:
    """The service of a stack. Raises UserError without a login."""
    if outputs.service == "vertex":
        project = account_of(outputs.people[0].role)
        return VertexService(project, outputs.region, outputs.stack, spot_share)
    try:
        return SageMakerService(clients(), outputs.stack, outputs.region)
    except LoggedOutError as error:
        raise UserError([Problem("login", None, str(error), LOG_IN)]) from error


@contextmanager
def led_to(variables: Mapping[str, str]) -> Iterator[None]:
    """SDKs of this process ask the emulated services within, with nothing that leads to real clouds."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update({**isolation.without_credentials(before), **variables})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
