"""The dynamic provider of the gate of a stack without a cluster (`gate.JobGate`).

Pulumi starts a process of its own for dynamic resources, and that imports this module: no provider's SDK is
needed. Its inputs are plain text and numbers, because Pulumi keeps them in the state.
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
from components.jobs.waiting import REAL, Clock, JobError, wait, why_not_completed
from infra.errors import UserError
from infra.jobs.service import JobService, JobState, LostError, ServiceJob
from infra.launchers import bundle, runplan
from infra.launchers.aws import sagemaker
from infra.launchers.gcp import vertex
from infra.launchers.runplan import RunPlan
from infra.launchers.shell import CODE_URI
from infra.launchers.validation import PLAN_FILE

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
"""Inputs of a validation: where one of them changes, the stack is validated again."""


PREFIX = "smoke-"
"""Prefix of the names of all validations."""
SCHEDULED = "smoke-scheduled"
"""The name of a repeated validation in its request. The scheduler replaces it at every start, or, where names
may repeat, the job uses a folder of its own."""
SCHEDULED_PLAN = "scheduled.json"
# The largest smoke.queue_timeout_s and smoke.timeout_s together, with a margin.
_LONGEST = timedelta(days=2)


# Errors of an absent or unreadable result.
_UNREAD = (UserError, LostError, ValueError, KeyError, TypeError)


class GateClosedError(Exception):
    """The validation did not pass, with the reason."""

    # Pulumi prints the module before the name, which is of no use to users.
    __module__ = "builtins"


class JobGateProvider(dynamic.ResourceProvider):
    """Runs the validation when the resource is created, and not again while `INPUTS` stay the same.

    A deletion asks no service: the creation ended with the job, and the service may be gone by then.
    """

    # Nothing of it is a secret.
    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.DiffResult:
        """A change of inputs replaces the run."""
        changed = [name for name in INPUTS if _olds.get(name) != _news.get(name)]
        return dynamic.DiffResult(changes=bool(changed), replaces=changed)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        """Run it. Raises GateClosedError; the service keeps the files of the job."""
        with _one_sentence("the validation did not run to its end"):
            found = validated(props, _service(props))
        return dynamic.CreateResult(found["job"], {**props, **found})


@contextmanager
def _one_sentence(what: str) -> Iterator[None]:
    """Turn errors within into one sentence: Pulumi prints tracebacks of providers."""
    sys.tracebacklimit = 0
    try:
        yield
    except GateClosedError as error:
        raise GateClosedError(str(error)) from None
    except (JobError, LostError) as error:
        raise GateClosedError(f"{what}: {error}") from None
    except UserError as error:
        text = "; ".join(f"{one.rule} {one.fix}".strip() for one in error.problems)
        raise GateClosedError(f"{what}: {text}") from None


def _service(props: Mapping[str, Any]) -> JobService:
    """Connect to the service of a stack. Raises UserError without a login."""
    # Resources of former versions have no kubeconfig.
    where = (props["account"], props["region"], props["stack"], props.get("kubeconfig") or "")
    return SERVICES[props["service"]].connect(*where)


def stem(props: Mapping[str, Any]) -> str:
    """Prefix of the names of all jobs with these inputs: services accept a name once."""
    text = json.dumps({name: props[name] for name in INPUTS}, sort_keys=True)
    return f"{PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:10]}-"


def validated(
    props: Mapping[str, Any],
    service: JobService,
    clock: Clock = REAL,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> dict[str, Any]:
    """Run the validation, or wait for one that is running; returns its job, result and verdict.

    Raises GateClosedError where the verdict does not open the gate or there is none, JobError where the job
    could not be followed, UserError and LostError where it could not be started.
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
    """Folder of code and plan of these inputs: other inputs have another folder."""
    return f"{props['code_uri']}/{stem(props).strip('-')}/"


def _run(props: Mapping[str, Any], name: str) -> RunPlan:
    plan, code = runplan.parse(props["run"]), code_folder(props)
    if plan.vertex is not None:
        return replace(plan, name=name, vertex=replace(plan.vertex, code_uri=code))
    if plan.sagemaker is None:
        return replace(plan, name=name, env={**plan.env, CODE_URI: code})
    return replace(plan, name=name, sagemaker=replace(plan.sagemaker, channels={"code": code}))


def _scheduled(props: Mapping[str, Any]) -> str | None:
    """The request of a repetition, whose plan has its topic; None without one."""
    if not props["scheduled_plan"]:
        return None
    plan = _run(props, SCHEDULED)
    plan = replace(plan, command=tuple(word.replace(PLAN_FILE, SCHEDULED_PLAN) for word in plan.command))
    if plan.vertex is None:
        return json.dumps(sagemaker.training_job(plan))
    return json.dumps(vertex.custom_job(replace(plan, vertex=replace(plan.vertex, folder_each=True))))


def _keep(props: Mapping[str, Any], service: JobService) -> None:
    code = bundle.shipped()
    if code.sha256 != props["code_sha256"]:
        raise JobError("the code of the validation changed while this deploy went on; deploy again")
    service.keep(f"{code_folder(props)}{bundle.NAME}", code.content)
    service.keep(f"{code_folder(props)}{PLAN_FILE}", props["plan"].encode())
    if props["scheduled_plan"]:
        service.keep(f"{code_folder(props)}{SCHEDULED_PLAN}", props["scheduled_plan"].encode())


def _verdict(props: Mapping[str, Any], job: ServiceJob, uri: str, service: JobService) -> dict[str, Any]:
    """The verdict of the run. A run that closed the gate is a failed job with the verdict as its reason."""
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
    """Reason of a failure: from the job's result where there is one, which not every service reads itself."""
    if job.state is JobState.FAILED:
        try:
            _, headline = _result(uri, service)
        except _UNREAD:
            return why_not_completed(job)
        if headline not in job.reason:
            return f"{headline}. All of it is in {uri}"
    return why_not_completed(job)
