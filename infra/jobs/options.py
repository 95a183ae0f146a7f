"""What somebody asks of a run, and what of the stack it comes to (pure)."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.errors import Problem, UserError
from infra.jobs.aws.limits import LIMITS as SAGEMAKER
from infra.jobs.aws.search.tuning import TuningSpec
from infra.jobs.gcp.limits import LIMITS as VERTEX
from infra.jobs.pack import DEFAULT_SCRIPT
from infra.jobs.roles import JobClass
from infra.jobs.service import CallerIdentity
from infra.outputs.jobs import JobMachine, JobOutputs, Person

DEFAULT_TASK = "training"
# Tasks, by their first word, that need to read alone.
_EVALUATIONS = ("evaluate", "evaluation", "processing")
# MaxRuntimeInSeconds of SageMaker: 28 days (StoppingCondition of its API).
MOST_HOURS = 28 * 24
_LONGEST_RECORD = 200
_LIMITS = {"sagemaker": SAGEMAKER, "vertex": VERTEX}
_BUCKET = r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]"


@dataclass(frozen=True, kw_only=True)
class Options:
    """The words of the command line; None and "" are what nobody said. Times in hours and minutes."""

    folder: Path
    script: str = DEFAULT_SCRIPT
    arguments: tuple[str, ...] = ()
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
    """What the service searches for, in runs of the script."""
    resume: str = ""
    """A run that is over, from whose checkpoints this one goes on."""


@dataclass(frozen=True, kw_only=True)
class RunOrder:
    """A run that the stack can start: options without gaps, in the stack's own words."""

    outputs: JobOutputs
    options: Options
    person: Person
    machine: JobMachine
    spot: bool
    max_hours: float
    dataset: str

    @property
    def nodes(self) -> int:
        """How many machines."""
        return self.options.nodes

    @property
    def trials(self) -> int:
        """How often its script is run at most."""
        return self.options.tune.trials if self.options.tune else 1

    @property
    def kind(self) -> JobClass:
        """What its rights are, by the first word of its task."""
        first = re.split(r"[^a-z]", self.options.task.strip().lower(), maxsplit=1)[0]
        return "evaluation" if first in _EVALUATIONS and not self.options.tune else "training"

    @property
    def role(self) -> str:
        """What the cloud calls the identity that it runs as."""
        return self.person.job_roles.get(self.kind, self.person.role)

    @property
    def reads_only(self) -> bool:
        """Whether it may write no checkpoint: then it has none."""
        return self.kind == "evaluation" and self.kind in self.person.job_roles


def resolve(outputs: JobOutputs, options: Options, caller: CallerIdentity | None) -> RunOrder:
    """The run that the options mean. Raises UserError with everything that is wrong with them.

    `caller` is who is logged in, for a stack of several people; None asks nobody.
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
    people: Sequence[Person], said: str, caller: CallerIdentity | None, problems: list[Problem]
) -> Person | None:
    """Who is named, else the only one, else who is logged in under that name or mail address."""
    names = {one.name: one for one in people}
    if said in names:
        return names[said]
    if said:
        problems.append(_unknown("--as", said, names, "unknown-person", "is not a person of the stack"))
        return None
    if len(people) == 1:
        return people[0]
    logged_in = caller.session.lower() if caller else ""
    for one in people:
        if logged_in and logged_in in (one.name.lower(), one.email.lower()):
            return one
    rule = "says whose run it is, and your login does not tell"
    problems.append(
        Problem(
            "--as",
            logged_in or None,
            rule,
            f"Add --as NAME: {', '.join(sorted(names))}.",
            code="person-not-named",
        )
    )
    return None


def _machine(machines: Sequence[JobMachine], said: str, problems: list[Problem]) -> JobMachine | None:
    """The machine of that name or type, or the only one."""
    for one in machines:
        if said in (one.name, one.machine):
            return one
    if not said and len(machines) == 1:
        return machines[0]
    names = {one.name: one for one in machines}
    if said:
        problems.append(_unknown("--on", said, names, "unknown-machine", "is not a machine of the stack"))
    else:
        fix = f"Add --on NAME: {', '.join(sorted(names))}."
        problems.append(Problem("--on", None, "says on which machine it runs", fix, code="machine-not-named"))
    return None


def _unknown(
    option: str, name: str, known: dict[str, Person] | dict[str, JobMachine], code: str, rule: str
) -> Problem:
    near = difflib.get_close_matches(name.lower(), [one.lower() for one in known], n=1)
    meant = [f"Did you mean {one}?" for one in known if one.lower() in near]
    fix = " ".join([*meant, f"Known: {', '.join(sorted(known))}."])
    return Problem(option, name, rule, fix, code=code)


def _amounts(outputs: JobOutputs, options: Options, machine: JobMachine | None) -> Iterator[Problem]:
    most = min(outputs.max_hours, MOST_HOURS)
    if options.max_hours is None:
        fix = f"Add --max-hours HOURS, at most {most:g}."
        yield Problem(
            "--max-hours",
            None,
            "says when the service ends the run, which bounds its price",
            fix,
            code="max-hours-missing",
        )
    elif not 0 < options.max_hours <= most:
        fix = f"Choose more than 0 and at most {most:g}; the limit is layout.max_hours of the stack."
        yield Problem(
            "--max-hours",
            options.max_hours,
            "is beyond what the stack allows",
            fix,
            code="max-hours-beyond-limit",
        )
    if machine is not None and not 1 <= options.nodes <= machine.max_nodes:
        fix = f"Choose 1 to {machine.max_nodes}; the limit is max_nodes of the machine in the stack file."
        yield Problem(
            "--nodes",
            options.nodes,
            f"is beyond what the stack has of {machine.name}",
            fix,
            code="nodes-beyond-limit",
        )
    if not 0 <= options.max_wait_hours <= MOST_HOURS:
        yield Problem(
            "--max-wait",
            options.max_wait_hours,
            "is in hours",
            f"Choose 0 to {MOST_HOURS}.",
            code="max-wait-not-accepted",
        )


def _warm(outputs: JobOutputs, options: Options, machine: JobMachine | None) -> Iterator[Problem]:
    limits = _LIMITS[outputs.service]
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
    if not limits.keep_warm_minutes:
        return
    if machine is not None and machine.reservation is not None:
        rule = f"the machines of {machine.name} are reserved, and paid apart"
        if options.spot:
            yield Problem("--spot", True, rule, "Leave --spot out.", code="spot-with-reservation")
        if options.keep_warm_minutes:
            yield Problem(
                "--keep-warm",
                options.keep_warm_minutes,
                rule,
                "Leave --keep-warm out.",
                code="keep-warm-with-reservation",
            )
    elif options.keep_warm_minutes and machine is not None and _spot(options, machine):
        fix = "Add --no-spot, or leave --keep-warm out."
        yield Problem(
            "--keep-warm",
            options.keep_warm_minutes,
            "the service keeps no spot machines",
            fix,
            code="keep-warm-with-spot",
        )


def _tuned(outputs: JobOutputs, options: Options, machine: JobMachine | None) -> Iterator[Problem]:
    """A search is SageMaker's, and of machines that are bought by the hour: no source says more of it."""
    if options.tune is None:
        return
    if not _LIMITS[outputs.service].searches:
        rule, fix = "only stacks on SageMaker have searches here", "Search inside of a run: examples/sweep."
        yield Problem("--tune", None, rule, fix, code="search-not-supported")
    for option, said in (("--keep-warm", options.keep_warm_minutes), ("--resume", options.resume)):
        if said:
            yield Problem(
                option,
                said,
                "is of a single run, and --tune starts many",
                f"Leave {option} out.",
                code="option-not-for-searches",
            )
    if machine is not None and machine.reservation is not None:
        rule = "is reserved by a training plan, which no search is known to use"
        yield Problem(
            "--on", machine.name, rule, "Search on another machine.", code="search-on-reserved-machine"
        )


def _spot(options: Options, machine: JobMachine) -> bool:
    """How the run is bought: as somebody says, else as the stack does."""
    return machine.purchase == "spot" if options.spot is None else options.spot


def _data(outputs: JobOutputs, options: Options) -> Iterator[Problem]:
    scheme = _LIMITS[outputs.service].scheme
    if not options.dataset and not options.data:
        fix = f"Add --dataset NAME or --data {scheme}...; --dataset synthetic or none is an answer, too."
        yield Problem(
            "--dataset", None, "a run records with which data it trained", fix, code="dataset-missing"
        )
    if options.data and not re.fullmatch(f"{scheme}{_BUCKET}(/.*)?", options.data):
        fix = f"Write {scheme}BUCKET/FOLDER/."
        yield Problem(
            "--data",
            options.data,
            "is no place in a bucket of the service's cloud",
            fix,
            code="invalid-data-uri",
        )
    for option, said in (("--dataset", options.dataset), ("--task", options.task)):
        if len(said) > _LONGEST_RECORD or not said.isprintable():
            fix = f"Use at most {_LONGEST_RECORD} characters in one line."
            yield Problem(
                option, said, "is no short text for the record of the run", fix, code="invalid-record-text"
            )
    if not options.task.strip():
        fix = "Write what the run is for, such as --task fine-tune, or leave the option out."
        yield Problem("--task", options.task, "is empty", fix, code="task-empty")
