"""Options of a run, and their resolution against a stack (pure)."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.errors import Problem, UserError
from infra.job_roles import JobClass
from infra.jobs.limits import LIMITS
from infra.jobs.packing.pack import DEFAULT_SCRIPT
from infra.jobs.service import CallerIdentity, TuningSpec
from infra.outputs.jobs import JobMachineOutputs, JobOutputs, Person

DEFAULT_TASK = "training"
# First words of tasks that only need to read data.
_EVALUATIONS = ("evaluate", "evaluation", "processing")
# MaxRuntimeInSeconds of SageMaker: 28 days (StoppingCondition of its API).
MOST_HOURS = 28 * 24
_RECORD_LENGTH = 200
_BUCKET = r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of the command line; None and "" are unset. Times in hours and minutes."""

    folder: Path
    script: str = DEFAULT_SCRIPT
    arguments: tuple[str, ...] = ()
    send: tuple[str, ...] = ()
    """Files of the folder that look like secrets and are none."""
    machine: str = ""
    spot: bool | None = None
    nodes: int = 1
    max_hours: float | None = None
    max_wait_hours: float = 12.0
    keep_warm_minutes: int = 0
    person: str = ""
    dataset: str = ""
    data: str = ""
    task: str = DEFAULT_TASK
    tune: TuningSpec | None = None
    """A hyperparameter search by the service, in runs of the script."""
    resume: str = ""
    """A finished run, from whose checkpoints this one continues."""


@dataclass(frozen=True, kw_only=True)
class RunOrder:
    """A run that the stack can start: options, resolved to parts of the stack."""

    outputs: JobOutputs
    options: RunOptions
    person: Person
    machine: JobMachineOutputs
    spot: bool
    max_hours: float
    dataset: str

    @property
    def nodes(self) -> int:
        """Number of machines."""
        return self.options.nodes

    @property
    def flex_start(self) -> bool:
        """Return whether the run waits for machines that the cloud does not have yet."""
        return self.machine.purchase == "flex_start"

    @property
    def trials(self) -> int:
        """Maximum number of runs of its script."""
        return self.options.tune.trials if self.options.tune else 1

    @property
    def kind(self) -> JobClass:
        """Class of its permissions, by the first word of its task."""
        first = re.split(r"[^a-z]", self.options.task.strip().lower(), maxsplit=1)[0]
        return "evaluation" if first in _EVALUATIONS and not self.options.tune else "training"

    @property
    def role(self) -> str:
        """Identity (role ARN or service account) that it runs as."""
        return self.person.job_roles.get(self.kind, self.person.role)

    @property
    def reads_only(self) -> bool:
        """Return whether it may not write checkpoints: then it has none."""
        return self.kind == "evaluation" and self.kind in self.person.job_roles


def resolve(outputs: JobOutputs, options: RunOptions, caller: CallerIdentity | None) -> RunOrder:
    """Resolve options to a run. Raises UserError with all problems.

    `caller` is the login, which identifies the person in a stack of several; None: not used.
    """
    problems: list[Problem] = []
    person = _person(outputs.people, options.person, caller, problems)
    machine = _machine(outputs.machines, options.machine, problems)
    problems += _amounts(outputs, options, machine)
    problems += [*_warm(outputs, options, machine), *_data(outputs, options)]
    problems += _tuned(outputs, options, machine)
    if problems or person is None or machine is None:
        raise UserError(problems)
    return RunOrder(
        outputs=outputs,
        options=options,
        person=person,
        machine=machine,
        spot=_spot(options, machine),
        max_hours=options.max_hours or 0,
        dataset=options.dataset or options.data,
    )


def _person(
    people: Sequence[Person], name: str, caller: CallerIdentity | None, problems: list[Problem]
) -> Person | None:
    """The named person, else the only one, else the one whose name or e-mail address is logged in."""
    names = {one.name: one for one in people}
    if name in names:
        return names[name]
    if name:
        problems.append(_unknown("--as", name, names, "unknown-person", "is not a person of the stack"))
        return None
    if len(people) == 1:
        return people[0]
    logged_in = caller.session.lower() if caller else ""
    for one in people:
        if logged_in and logged_in in (one.name.lower(), one.email.lower()):
            return one
    rule = "is required: the login is not a person of the stack"
    fix = f"Add --as NAME: {', '.join(sorted(names))}."
    problems.append(Problem("--as", logged_in or None, rule, fix, code="person-not-named"))
    return None


def _machine(
    machines: Sequence[JobMachineOutputs], name: str, problems: list[Problem]
) -> JobMachineOutputs | None:
    for one in machines:
        if name in (one.name, one.machine):
            return one
    if not name and len(machines) == 1:
        return machines[0]
    names = {one.name: one for one in machines}
    if name:
        problems.append(_unknown("--on", name, names, "unknown-machine", "is not a machine of the stack"))
    else:
        fix = f"Add --on NAME: {', '.join(sorted(names))}."
        rule = "is required: the stack has several machines"
        problems.append(Problem("--on", None, rule, fix, code="machine-not-named"))
    return None


def _unknown(
    option: str, name: str, known: dict[str, Person] | dict[str, JobMachineOutputs], code: str, rule: str
) -> Problem:
    near = difflib.get_close_matches(name.lower(), [one.lower() for one in known], n=1)
    meant = [f"Did you mean {one}?" for one in known if one.lower() in near]
    fix = " ".join([*meant, f"Known: {', '.join(sorted(known))}."])
    return Problem(option, name, rule, fix, code=code)


def _amounts(
    outputs: JobOutputs, options: RunOptions, machine: JobMachineOutputs | None
) -> Iterator[Problem]:
    most = min(outputs.max_hours, MOST_HOURS)
    if options.max_hours is None:
        fix = f"Add --max-hours HOURS, at most {most:g}."
        rule = "is required: the service ends the run then, which limits its price"
        yield Problem("--max-hours", None, rule, fix, code="max-hours-missing")
    elif not 1 / 3600 <= options.max_hours <= most:  # MaxRuntimeInSeconds is a whole number, at least 1
        fix = f"Choose a second (0.0003) to {most:g} hours; the limit is layout.max_hours of the stack."
        rule = "is outside of the limits of the stack"
        yield Problem("--max-hours", options.max_hours, rule, fix, code="max-hours-beyond-limit")
    if machine is not None and not 1 <= options.nodes <= machine.max_nodes:
        fix = f"Choose 1 to {machine.max_nodes}; the limit is max_nodes of the machine in the stack file."
        rule = f"exceeds the limit of {machine.name}"
        yield Problem("--nodes", options.nodes, rule, fix, code="nodes-beyond-limit")
    if not 0 <= options.max_wait_hours <= MOST_HOURS:
        rule, fix = "must be a number of hours", f"Choose 0 to {MOST_HOURS}."
        yield Problem("--max-wait", options.max_wait_hours, rule, fix, code="max-wait-not-accepted")


def _warm(outputs: JobOutputs, options: RunOptions, machine: JobMachineOutputs | None) -> Iterator[Problem]:
    limits = LIMITS[outputs.service]
    if not 0 <= options.keep_warm_minutes <= limits.keep_warm_minutes:
        most = limits.keep_warm_minutes
        fix = f"Choose 0 to {most}." if most else "Leave --keep-warm out."

        yield Problem(
            "--keep-warm",
            options.keep_warm_minutes,
            limits.keep_warm_rule,
            fix,
            code="keep-warm-not-accepted",
        )
    asked = options.keep_warm_minutes if limits.keep_warm_minutes else 0
    if machine is not None and machine.reservation is not None:
        rule = f"the machines of {machine.name} are reserved, and billed separately"
        if options.spot:
            yield Problem("--spot", True, rule, "Leave --spot out.", code="spot-with-reservation")
        if asked:
            fix = "Leave --keep-warm out."
            yield Problem("--keep-warm", asked, rule, fix, code="keep-warm-with-reservation")
    elif machine is not None and machine.purchase == "flex_start" and options.spot:
        rule, fix = f"the machines of {machine.name} are bought by flex-start", "Leave --spot out."
        yield Problem("--spot", True, rule, fix, code="spot-with-flex-start")
    elif asked and machine is not None and _spot(options, machine):
        fix = "Add --no-spot, or leave --keep-warm out."
        rule = "the service does not keep spot machines"
        yield Problem("--keep-warm", asked, rule, fix, code="keep-warm-with-spot")


def _tuned(outputs: JobOutputs, options: RunOptions, machine: JobMachineOutputs | None) -> Iterator[Problem]:
    """Searches need SageMaker, and machines bought by the hour: no source covers training plans."""
    if options.tune is None:
        return
    if not LIMITS[outputs.service].searches:
        rule, fix = "searches are supported on SageMaker only", "Search inside of a run: examples/sweep."
        yield Problem("--tune", None, rule, fix, code="search-not-supported")
    for option, value in (("--keep-warm", options.keep_warm_minutes), ("--resume", options.resume)):
        if value:
            rule, fix = "cannot be combined with --tune", f"Leave {option} out."
            yield Problem(option, value, rule, fix, code="option-not-for-searches")
    if machine is not None and machine.reservation is not None:
        rule = "is reserved by a training plan, which searches do not support"
        fix = "Search on another machine."
        yield Problem("--on", machine.name, rule, fix, code="search-on-reserved-machine")


def _spot(options: RunOptions, machine: JobMachineOutputs) -> bool:
    """Return whether the run uses spot: by its option, else by the default of the machine."""
    return machine.purchase == "spot" if options.spot is None else options.spot


def _data(outputs: JobOutputs, options: RunOptions) -> Iterator[Problem]:
    scheme = LIMITS[outputs.service].scheme
    if not options.dataset and not options.data:
        fix = f"Add --dataset NAME or --data {scheme}...; --dataset synthetic and none are accepted, too."
        yield Problem("--dataset", None, "is required: a run records its data", fix, code="dataset-missing")
    if options.data and not re.fullmatch(f"{scheme}{_BUCKET}(/.*)?", options.data):
        fix = f"Write {scheme}BUCKET/FOLDER/."
        rule = "is not a URI of a bucket of the cloud"
        yield Problem("--data", options.data, rule, fix, code="invalid-data-uri")
    for option, text in (("--dataset", options.dataset), ("--task", options.task)):
        if len(text) > _RECORD_LENGTH or not text.isprintable():
            fix = f"Use at most {_RECORD_LENGTH} characters in one line."
            yield Problem(option, text, "is not a short text of one line", fix, code="invalid-record-text")
    if not options.task.strip():
        fix = "Name the purpose of the run, such as --task fine-tune, or leave the option out."
        yield Problem("--task", options.task, "is empty", fix, code="task-empty")
