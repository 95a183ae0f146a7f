"""Submits a job from options; all checks run before anything is uploaded or created."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra.errors import Problem, UserError
from infra.job_roles import account_of
from infra.jobs import money
from infra.jobs.options import RunOptions, RunOrder, resolve
from infra.jobs.packing.pack import CodePack, pack
from infra.jobs.packing.secret_texts import secrets_in
from infra.jobs.plan import run_name, run_plan
from infra.jobs.service import CallerIdentity, JobService, LostError, Moment, Searching
from infra.jobs.service_part import Keeping, RunService
from infra.launchers import bundle, managed
from infra.launchers.aws import trial
from infra.launchers.runplan import RunPlan
from infra.outputs.jobs import JobOutputs


@dataclass(frozen=True)
class Submission:
    """A run that can be started."""

    name: str
    """Name of the job."""
    order: RunOrder
    pack: CodePack
    plan: RunPlan
    code_uri: str
    price: money.CostCeiling
    rooms: tuple[money.Room, ...]
    unseen: int
    """Jobs of the stack that no budget counts, as the login may not read them."""
    kept_warm: str = ""
    """Time for which the machines wait for the next run; empty: not at all."""


def prepare(outputs: JobOutputs, options: RunOptions, service: RunService, now: Moment) -> Submission:
    """Check and plan a run without creating anything. Raises UserError with the problems."""
    if problems := list(_secret_arguments(options)):
        raise UserError(problems)
    packed = pack(options.folder, options.script, options.send)
    with answered():
        caller = service.caller()
        order = resolve(outputs, options, caller)
        _refuse_other_account(order, caller)
        checkpoints = _checkpoints(order, service) if options.resume else None
        kept = service.kept_warm(order) if options.keep_warm_minutes and isinstance(service, Keeping) else ""
        rooms = tuple(money.rooms(order, service.jobs(money.month_of(now)), now)) if outputs.budgets else ()
    if problems := list(money.broken(rooms)):
        raise UserError(problems)
    # In a folder of the person: others could put another script at a digest that they know.
    code_uri = f"{outputs.code_uri.rstrip('/')}/{order.person.name}/{_digest(packed)}/"
    plan = run_plan(order, packed, code_uri, now, part_of=service.part, checkpoint_uri=checkpoints)
    return Submission(
        name=run_name(order, now),
        order=order,
        pack=packed,
        plan=plan,
        code_uri=code_uri,
        price=money.price(order),
        rooms=rooms,
        unseen=service.unseen,
        kept_warm=kept,
    )


def start(run: Submission, service: JobService, notify: Callable[[str], None]) -> None:
    """Upload the code if it is missing, then create the job as the last step.

    Code is stored under its digest, so that the next attempt reuses it. Raises UserError if there is no job,
    LostError if that is unknown.
    """
    with answered():
        sent = service.keep(f"{run.code_uri}{managed.PACK}", run.pack.content)
        service.keep(f"{run.code_uri}{bundle.NAME}", bundle.of_jobs().content)
        if tuning := run.order.options.tune:
            service.keep(f"{run.code_uri}{trial.NAME}", Path(trial.__file__).read_bytes())
    notify(f"code       {'uploaded to' if sent else 'already at'} {run.code_uri}")
    if tuning:
        assert isinstance(service, Searching), "options refuse it for other services"
        service.search(run.plan, tuning)
    else:
        service.submit(run.plan)


@contextmanager
def answered() -> Iterator[None]:
    """Raise UserError for requests within that get no response."""
    try:
        yield
    except LostError as error:
        fix = "Check the connection to the cloud, and retry."
        rule = f"no response of the service: {error}"
        raise UserError([Problem("connection", None, rule, fix, code="service-unreachable")]) from error


def _checkpoints(order: RunOrder, service: JobService) -> str:
    """URI of the checkpoints of the run to resume. Raises UserError."""
    name, team = order.options.resume, order.person.team
    if order.reads_only:
        rule, fix = "an evaluation has no checkpoints of its own", "Leave it out, or name another --task."
        raise UserError([Problem("--resume", name, rule, fix, code="evaluation-not-resumable")])
    found = service.job(name)
    if found is None or found.stack != order.outputs.stack or not found.checkpoint_uri:
        fix = f"`trainstack runs -s {order.outputs.stack}` lists runs."
        raise UserError([Problem("--resume", name, "is not a run of the stack", fix, code="run-not-found")])
    if not found.state.over:
        rule = "is still running, and two runs would write the same checkpoints"
        fix = "Wait for its end, or stop it (trainstack stop)."
        raise UserError([Problem("--resume", name, rule, fix, code="run-not-over")])
    if found.team != team:
        fix = f"Resume a run of team {team}."
        rule = f"is a run of team {found.team}"
        raise UserError([Problem("--resume", name, rule, fix, code="run-of-other-team")])
    return found.checkpoint_uri


def _secret_arguments(options: RunOptions) -> Iterator[Problem]:
    """Arguments with keys or tokens: the service shows them, and MLflow records them."""
    for _, kind in secrets_in(" ".join(options.arguments).encode("utf-8", "surrogateescape")):
        rule = f"have a {kind}, which everyone who may see the job or its record could read"
        fix = "Remove it. Keys of other services are not supported: roles of jobs read data, and no secrets."
        yield Problem("arguments", None, rule, fix, code="argument-like-secret")


def _digest(packed: CodePack) -> str:
    """Digest of code and wrapper, so that a new wrapper does not replace one of a running job."""
    return hashlib.sha256(f"{packed.sha256} {bundle.of_jobs().sha256}".encode()).hexdigest()


def _refuse_other_account(order: RunOrder, caller: CallerIdentity) -> None:
    account = account_of(order.person.role)
    if caller.account != account:
        rule = f"is for account {caller.account}, and the stack is in {account}"
        fix = "Log in to that account: set AWS_PROFILE, or aws sso login."
        raise UserError([Problem("login", caller.session, rule, fix, code="login-for-other-account")])
