"""What makes, compares and deletes the gate of a stack without a cluster (`gate.JobGate`).

Pulumi starts a process of its own for dynamic resources, and that imports this module: no provider's SDK is
needed. What it is given is plain text and numbers, because Pulumi keeps it in the state.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pulumi import dynamic

from components.jobs.services import SERVICES
from components.jobs.waiting import REAL, Clock, JobError, stop, wait, why_not_completed
from infra.errors import UserError
from infra.jobs.service import JobService, JobState, LostError, ServiceJob
from smoke_training.launchers import bundle, managed, runplan
from smoke_training.launchers.runplan import RunPlan
from smoke_training.launchers.validation import PLAN_FILE

INPUTS = (
    "service",
    "stack",
    "account",
    "region",
    "run",
    "plan",
    "scheduled_plan",
    "code_sha256",
    "code_uri",
    "results_uri",
    "accept",
    "start_within_s",
)
"""What a validation depends on: where one of them changes, the stack is validated again."""


PREFIX = "smoke-"
"""Of the names of all validations."""
SCHEDULED = "smoke-scheduled"
"""The name of a repeated validation in its request. Whoever starts it puts another one there every time, or,
where names may be the same, the job takes a folder of its own."""
SCHEDULED_PLAN = "scheduled.json"
# The most of smoke.queue_timeout_s and smoke.timeout_s together, and some.
_LONGEST = timedelta(days=2)


# What comes of a result that is not there, or none.
_UNREAD = (UserError, LostError, ValueError, KeyError, TypeError)


class GateClosedError(Exception):
    """The validation opened no gate: why."""

    # Pulumi prints the module before the name, which tells a user nothing.
    __module__ = "builtins"


class JobGateProvider(dynamic.ResourceProvider):
    """Runs the validation when the resource is created, and not again while `INPUTS` stay the same."""

    # Nothing of it is a secret.
    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.DiffResult:
        """Another run takes the place of this one."""
        changed = [name for name in INPUTS if _olds.get(name) != _news.get(name)]
        return dynamic.DiffResult(changes=bool(changed), replaces=changed)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Run it. Raises GateClosedError; the service keeps what the job wrote."""
        with _told_plainly("the validation did not run to its end"):
            found = validated(props, _service(props))
        return dynamic.CreateResult(found["job"], {**props, **found})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """End the job if it is under way; its results stay in the bucket."""
        with _told_plainly(f"job {_id} was not ended"):
            stop(_service(_props), _id)


@contextmanager
def _told_plainly(what: str) -> Iterator[None]:
    """Turns what can go wrong within into one sentence: Pulumi prints tracebacks of providers."""
    sys.tracebacklimit = 0
    try:
        yield
    except GateClosedError as error:
        raise GateClosedError(str(error)) from None
    except (JobError, LostError) as error:
        raise GateClosedError(f"{what}: {error}") from None
    except UserError as error:
        said = "; ".join(f"{one.rule} {one.fix}".strip() for one in error.problems)
        raise GateClosedError(f"{what}: {said}") from None


def _service(props: Mapping[str, Any]) -> JobService:
    """Connect to the service of a stack. Raises UserError without a login."""
    return SERVICES[props["service"]].connect(props["account"], props["region"], props["stack"])


def stem(props: Mapping[str, Any]) -> str:
    """The beginning of the names of all jobs with these inputs: services take a name once."""
    text = json.dumps({name: props[name] for name in INPUTS}, sort_keys=True)
    return f"{PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:10]}-"


def validated(
    props: Mapping[str, Any],
    service: JobService,
    clock: Clock = REAL,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> dict[str, Any]:
    """Run the validation, or wait for the one that is under way; its job, result and verdict.

    Raises GateClosedError where the verdict opens no gate or there is none, JobError where the job could not
    be followed, UserError and LostError where it could not be started.
    """
    account = service.caller().account
    if account != props["account"]:
        raise JobError(f"the login is one of account {account}, the stack is in {props['account']}")
    name = _under_way(props, service, now())
    if name is None:
        name = f"{stem(props)}{now():%y%m%d%H%M%S}"
        plan = _run(props, name)
        _keep(props, service)
        service.submit(plan)
    job = wait(service, name, float(props["start_within_s"]), clock)
    uri = f"{props['results_uri']}/{name}/result.json"
    billed_s = None if job.billed_s is None else job.billed_s * job.nodes
    verdict = _verdict(props, job, uri, service)
    return {"job": name, "result_uri": uri, "billed_s": billed_s, "scheduled": _scheduled(props), **verdict}


def _under_way(props: Mapping[str, Any], service: JobService, now: datetime) -> str | None:
    """A job with these inputs that an interrupted deploy left running."""
    mine = (job for job in service.jobs(now - _LONGEST) if job.name.startswith(stem(props)))
    return next((job.name for job in mine if not job.state.over), None)


def code_folder(props: Mapping[str, Any]) -> str:
    """Where code and plan of these inputs lie: other inputs have another folder."""
    return f"{props['code_uri']}/{stem(props).strip('-')}/"


def _run(props: Mapping[str, Any], name: str) -> RunPlan:
    plan, code = runplan.parse(props["run"]), code_folder(props)
    if plan.vertex is not None:
        return replace(plan, name=name, vertex=replace(plan.vertex, code_uri=code))
    assert plan.sagemaker is not None  # `gate` makes it so
    return replace(plan, name=name, sagemaker=replace(plan.sagemaker, channels={"code": code}))


def _scheduled(props: Mapping[str, Any]) -> str | None:
    """The request of a repetition, whose plan says whom it tells; None without one."""
    if not props["scheduled_plan"]:
        return None
    plan = _run(props, SCHEDULED)
    plan = replace(plan, command=tuple(word.replace(PLAN_FILE, SCHEDULED_PLAN) for word in plan.command))
    if plan.vertex is None:
        return json.dumps(managed.sagemaker(plan))
    return json.dumps(managed.vertex(replace(plan, vertex=replace(plan.vertex, folder_each=True))))


def _keep(props: Mapping[str, Any], service: JobService) -> None:
    code = bundle.shipped()
    if code.sha256 != props["code_sha256"]:
        raise JobError("the code of the validation changed while this deploy went on; deploy again")
    service.keep(f"{code_folder(props)}{bundle.NAME}", code.content)
    service.keep(f"{code_folder(props)}{PLAN_FILE}", props["plan"].encode())
    if props["scheduled_plan"]:
        service.keep(f"{code_folder(props)}{SCHEDULED_PLAN}", props["scheduled_plan"].encode())


def _verdict(props: Mapping[str, Any], job: ServiceJob, uri: str, service: JobService) -> dict[str, Any]:
    """What the run found. A run that judged and closed the gate is a failed job whose reason says so."""
    if job.state is not JobState.COMPLETED:
        raise GateClosedError(f"job {job.name} {job.state}. {_why(job, uri, service)}")
    try:
        verdict, headline = _result(uri, service)
    except _UNREAD as error:
        raise GateClosedError(f"job {job.name} completed, but {uri} holds no result: {error}") from error
    if verdict not in props["accept"]:
        opens = ", ".join(props["accept"])
        raise GateClosedError(f"job {job.name}: {headline}. The gate opens for {opens}.")
    return {"verdict": verdict, "headline": headline}


def _result(uri: str, service: JobService) -> tuple[str, str]:
    """Verdict and headline of a result. Raises one of `_UNREAD`."""
    result = json.loads(service.content(uri))
    return str(result["verdict"]), str(result["headline"])


def _why(job: ServiceJob, uri: str, service: JobService) -> str:
    """Why a job is no success: by its result where it came so far, which not every service reads itself."""
    if job.state is JobState.FAILED:
        try:
            _, headline = _result(uri, service)
        except _UNREAD:
            return why_not_completed(job)
        if headline not in job.reason:
            return f"{headline}. All of it is in {uri}"
    return why_not_completed(job)
