"""The run plan: what one validation run is asked to do (pure: parsing and arithmetic, no I/O)."""

import dataclasses
import difflib
import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from smoke_training.fabric import Fabric
from smoke_training.model import EXIT_CODES, Verdict
from smoke_training.phases import FULL, NAMES, QUICK, chosen
from smoke_training.statistics import baseline

SCHEMA = "trainstack.smoke-plan/1"


class PlanError(ValueError):
    """A plan that cannot be run; `problems` lists every fault found, not the first."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class ExpectedBusbw:
    """A sourced all-reduce figure: GB/s at `size_bytes` over `nodes` nodes."""

    value: float
    nodes: int
    size_bytes: int
    source: str
    kind: str


@dataclass(frozen=True)
class StorageTarget:
    """A folder to measure: what people call it, its path in the pod, and its declared rate in MB/s."""

    name: str
    path: str
    write_mb_s: float | None = None
    source: str | None = None


@dataclass(frozen=True)
class PeakTflops:
    """Declared dense peak of one accelerator in TFLOPS at a data type."""

    value: float
    dtype: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One validated plan. USD per hour for all nodes together, times in seconds, slowdown as a ratio.

    `rails` are the network interfaces that carry training traffic, in order, each of `rail_gbit_s`;
    `network_gbit_s` is the sum of a node's. `phases` limits a run to some of its depth's phases. A
    `preemptible` run may be stopped at any time: that is SKIPPED then, no error. `alert_topic_arn` is the
    SNS topic that is told when a run that nobody waits for finds something.
    """

    stack: str
    nodes: int
    ranks_per_node: int | None
    instance_type: str
    gpus_per_node: int
    fabric: Fabric
    cloud: str
    region: str
    profile: str
    owner: str
    team: str
    cost_center: str
    hourly_cost_usd: float | None
    min_scaling_efficiency: float
    max_straggler_slowdown: float
    expected_busbw: ExpectedBusbw | None
    timeout_s: float
    accept: tuple[str, ...]
    image: str
    code_sha256: str
    dataset: str
    task: str
    seed: int
    git_sha: str | None = None
    deploy_id: str | None = None
    depth: str = QUICK
    phases: tuple[str, ...] | None = None
    rails: tuple[str, ...] = ()
    rail_gbit_s: float | None = None
    network_gbit_s: float | None = None
    storage: tuple[StorageTarget, ...] = ()
    peak_tflops: PeakTflops | None = None
    baseline: Mapping[str, object] | None = None
    hang_timeout_s: float = 30.0
    join_timeout_s: float = 120.0
    preemptible: bool = False
    alert_topic_arn: str | None = None

    @property
    def chosen_phases(self) -> tuple[str, ...]:
        """The phases this plan runs, in order."""
        return chosen(self.depth, self.phases)

    def opens(self, verdict: Verdict) -> bool:
        """Whether the plan accepts the verdict; FAIL and ERROR are never accepted."""
        return verdict not in (Verdict.FAIL, Verdict.ERROR) and str(verdict) in self.accept

    def exit_code(self, verdict: Verdict) -> int:
        """0 for a verdict that opens the gate (the exit status of an awaited Job), else its own code."""
        return 0 if self.opens(verdict) else EXIT_CODES[verdict]

    @property
    def partial(self) -> bool:
        """Whether the plan leaves out phases that its depth has: such a run validates no stack."""
        return set(self.chosen_phases) < set(chosen(self.depth, None))


@dataclass(frozen=True)
class KillSchedule:
    """Which rank dies, at which step, in a run of `steps` steps with a checkpoint every `every` steps."""

    victim: int
    step: int
    steps: int
    every: int


RESUME_STEPS = 24
CHECKPOINT_EVERY = 4
NEXT_STEPS = 8  # steps the uninterrupted run goes further, so that losses after the resume always have a twin


def kill_schedule(seed: int, world: int) -> KillSchedule:
    """Derive victim and step from the seed.

    The step lies after the second checkpoint, so that there is one to fall back to, and before the last.
    """
    dice = random.Random(seed)  # noqa: S311 - a reproducible choice, not a secret
    victim = dice.randrange(world)
    step = dice.randrange(2 * CHECKPOINT_EVERY + 1, RESUME_STEPS - CHECKPOINT_EVERY)
    return KillSchedule(victim, step, RESUME_STEPS, CHECKPOINT_EVERY)


def _text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _count(low: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= low


def _optional(rule: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or rule(value)


def _between(low: float, high: float) -> Callable[[object], bool]:
    return lambda value: _number(value) and low < float(str(value)) <= high


def _list_of(rule: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(rule(item) for item in value)


def _fabric(value: object) -> bool:
    try:
        return isinstance(value, str) and Fabric(value) in Fabric
    except ValueError:
        return False


def _accepted(value: object) -> bool:
    known = {"PASS", "INCONCLUSIVE", "SKIPPED"}
    return isinstance(value, list) and "PASS" in value and all(v in known for v in value)


def _topic_arn(value: object) -> bool:
    form = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[\w-]+"
    return isinstance(value, str) and re.fullmatch(form, value) is not None


_TEXTS = (
    "stack",
    "instance_type",
    "cloud",
    "region",
    "profile",
    "owner",
    "team",
    "cost_center",
    "image",
    "code_sha256",
    "dataset",
    "task",
)
_RULES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "schema": (lambda value: value == SCHEMA, f'must be "{SCHEMA}"'),
    **dict.fromkeys(_TEXTS, (_text, "must be a non-empty text")),
    "fabric": (_fabric, f"must be one of {', '.join(Fabric)}"),
    "nodes": (_count(1), "must be a whole number >= 1"),
    "ranks_per_node": (_optional(_count(1)), "must be null or a whole number >= 1"),
    "gpus_per_node": (_count(0), "must be a whole number >= 0"),
    "hourly_cost_usd": (
        _optional(lambda v: _number(v) and float(str(v)) >= 0),
        "must be null or a number >= 0",
    ),
    "min_scaling_efficiency": (_between(0, 1), "must be above 0 and at most 1"),
    "max_straggler_slowdown": (
        _between(1.05, 100),
        "must be above 1.05, the slowdown that is called negligible",
    ),
    "timeout_s": (_between(29, 86400), "must be at least 30 and at most 86400 seconds"),
    "accept": (_accepted, "must list PASS and may add INCONCLUSIVE or SKIPPED"),
    "expected_busbw_gb_s": (_optional(lambda v: isinstance(v, dict)), "must be null or an object"),
}
_OPTIONAL: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "seed": (_count(0), "must be a whole number >= 0"),
    "git_sha": (_optional(_text), "must be null or a non-empty text"),
    "deploy_id": (_optional(_text), "must be null or a non-empty text"),
    "depth": (lambda value: value in (QUICK, FULL), "must be quick or full"),
    "phases": (
        _optional(_list_of(lambda value: value in NAMES)),
        f"must be null or a list of phases: {', '.join(NAMES)}",
    ),
    "rails": (_list_of(_text), "must be a list of interface names"),
    "rail_gbit_s": (_optional(_between(0, 1e6)), "must be null or a number above 0, in Gb/s"),
    "network_gbit_s": (_optional(_between(0, 1e6)), "must be null or a number above 0, in Gb/s"),
    "storage": (_list_of(lambda value: isinstance(value, dict)), "must be a list of objects"),
    "peak_tflops": (_optional(lambda value: isinstance(value, dict)), "must be null or an object"),
    "baseline": (_optional(lambda value: isinstance(value, dict)), "must be null or an object"),
    "hang_timeout_s": (_between(0, 3600), "must be above 0 and at most 3600 seconds"),
    "join_timeout_s": (_between(0, 3600), "must be above 0 and at most 3600 seconds"),
    "preemptible": (lambda value: isinstance(value, bool), "must be true or false"),
    "alert_topic_arn": (_optional(_topic_arn), "must be null or the ARN of an SNS topic"),
}
_STORAGE_RULES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "name": (_text, "must be a non-empty text"),
    "path": (_text, "must be a non-empty text"),
}
_STORAGE_OPTIONAL: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "write_mb_s": (_optional(_between(0, math.inf)), "must be null or a number above 0, in MB/s"),
    "source": (_optional(_text), "must be null or a non-empty text"),
}
_PEAK_RULES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "value": (_between(0, math.inf), "must be a number above 0"),
    "dtype": (_text, "must be a non-empty text"),
    "source": (_text, "must be a non-empty text"),
}
_BUSBW_RULES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "value": (_between(0, math.inf), "must be a number above 0"),
    "nodes": (_count(1), "must be a whole number >= 1"),
    "size_bytes": (_count(1), "must be a whole number >= 1"),
    "source": (_text, "must be a non-empty text"),
    "kind": (_text, "must be a non-empty text"),
}


def parse(text: str) -> Plan:
    """Read a plan document; PlanError lists every problem as `path: got value; rule`."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise PlanError([f"plan: not readable as JSON ({error})"]) from error
    if not isinstance(document, dict):
        raise PlanError([f"plan: got a {type(document).__name__}; must be an object"])
    problems = _problems(document, _RULES, _OPTIONAL, "")
    busbw = document.get("expected_busbw_gb_s")
    if isinstance(busbw, dict):
        problems += _problems(busbw, _BUSBW_RULES, {}, "expected_busbw_gb_s.")
    peak, storage = document.get("peak_tflops"), document.get("storage") or []
    if isinstance(peak, dict):
        problems += _problems(peak, _PEAK_RULES, {}, "peak_tflops.")
    for number, target in enumerate(storage):
        if isinstance(target, dict):
            problems += _problems(target, _STORAGE_RULES, _STORAGE_OPTIONAL, f"storage[{number}].")
    if isinstance(document.get("baseline"), dict):
        problems += _baseline_problems(document["baseline"])
    if problems:
        raise PlanError(problems)
    return Plan(**_values(document))


def _baseline_problems(document: Mapping[str, object]) -> list[str]:
    try:
        baseline.parse(document)
    except baseline.BaselineError as error:
        return list(error.problems)
    return []


def _values(document: Mapping[str, Any]) -> dict[str, Any]:
    """A checked document as the arguments of `Plan`."""
    values = {key: value for key, value in document.items() if key not in ("schema", "expected_busbw_gb_s")}
    busbw, peak, seed = (document.get(key) for key in ("expected_busbw_gb_s", "peak_tflops", "seed"))
    values["fabric"] = Fabric(document["fabric"])
    values["expected_busbw"] = ExpectedBusbw(**busbw) if busbw else None
    values["peak_tflops"] = PeakTflops(**peak) if peak else None
    values["storage"] = tuple(StorageTarget(**target) for target in document.get("storage", ()))
    values["seed"] = seed if seed is not None else _derived_seed(document)
    for key in ("accept", "rails", "phases"):
        if document.get(key) is not None:
            values[key] = tuple(document[key])
    return values


def located(plan: Plan, environment: Mapping[str, str]) -> Plan:
    """The plan with `$NAME` in storage paths replaced: a job's own folder is only known inside the job.

    Raises PlanError for every variable that the environment does not have.
    """
    missing = [
        f"storage[{number}].path: got {json.dumps(target.path)}; ${name} is not in the environment"
        for number, target in enumerate(plan.storage)
        for name in _VARIABLE.findall(target.path)
        if not environment.get(name)
    ]
    if missing:
        raise PlanError(missing)
    found = tuple(
        dataclasses.replace(target, path=_VARIABLE.sub(lambda name: environment[name[1]], target.path))
        for target in plan.storage
    )
    return dataclasses.replace(plan, storage=found)


_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


def render(plan: Plan) -> str:
    """The plan as a document that `parse` reads back to an equal plan."""
    document = dataclasses.asdict(plan)
    document["expected_busbw_gb_s"] = document.pop("expected_busbw")
    return json.dumps({"schema": SCHEMA, **document}, indent=1)


def local_plan(ranks: int, depth: str = QUICK, only: tuple[str, ...] | None = None) -> Plan:
    """The plan of `run --ranks N`: one node, this machine, nothing expected of its fabric.

    The minimum efficiency is below a cluster's 0.8: here ranks and their communication threads share CPUs.
    """
    unknown = "local"
    return Plan(
        stack=unknown,
        nodes=1,
        ranks_per_node=ranks,
        instance_type=unknown,
        gpus_per_node=0,
        fabric=Fabric.TCP,
        cloud=unknown,
        region=unknown,
        profile="quick",
        owner=unknown,
        team=unknown,
        cost_center=unknown,
        hourly_cost_usd=None,
        min_scaling_efficiency=0.7,
        max_straggler_slowdown=1.15,
        expected_busbw=None,
        timeout_s=600,
        accept=("PASS",),
        image=unknown,
        code_sha256=unknown,
        dataset="synthetic",
        task="local-validation",
        seed=20261121,
        depth=depth,
        phases=only,
    )


def _derived_seed(document: Mapping[str, object]) -> int:
    """A seed every node derives alike, different for every distinct plan."""
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:4], "big")


def _problems(
    document: Mapping[str, object],
    required: Mapping[str, tuple[Callable[[object], bool], str]],
    optional: Mapping[str, tuple[Callable[[object], bool], str]],
    prefix: str,
) -> list[str]:
    problems = [
        f"{prefix}{key}: missing; {rule}" for key, (_, rule) in required.items() if key not in document
    ]
    known = {**required, **optional}
    for key, value in document.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(sorted(known))}"
            problems.append(f"{prefix}{key}: unknown key; {hint}")
        elif not known[key][0](value):
            problems.append(f"{prefix}{key}: got {json.dumps(value)}; {known[key][1]}")
    return problems
