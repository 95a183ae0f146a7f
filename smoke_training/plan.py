"""Plan of one validation run (pure: parsing and arithmetic, no I/O)."""

import dataclasses
import hashlib
import json
import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Template
from typing import Annotated

from smoke_training.fabric import Fabric
from smoke_training.model import EXIT_CODES, Verdict
from smoke_training.phases import BURN, FULL, NAMES, PHASE, QUICK, chosen
from smoke_training.reader import Count, DocumentError, Positive, Text, ValueRule, Whole, above, parsed, read
from smoke_training.statistics import baseline

SCHEMA = "trainstack.smoke-plan/1"
BURN_MARGIN_S = 120.0  # to start, to copy and to judge
_ACCEPTABLE = {"PASS", "INCONCLUSIVE", "SKIPPED"}
_TOPIC = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[\w-]+"
# Pub/Sub API reference, Topic.name; a project's id may hold the domain of its organization.
_PUBSUB_TOPIC = r"projects/[a-z0-9.:-]+/topics/[A-Za-z][\w.~+%-]{2,254}"

Rate = Annotated[float, above(0, 1e6, "must be a number above 0, in Gb/s")]
Patience = Annotated[float, above(0, 3600, "must be above 0 and at most 3600 seconds")]
Cost = Annotated[float, ValueRule(lambda value: 0 <= value < math.inf, "must be a number >= 0")]
Efficiency = Annotated[float, above(0, 1, "must be above 0 and at most 1")]
Slowdown = Annotated[float, above(1.05, 100, "must be above 1.05, the slowdown that is called negligible")]
Limit = Annotated[float, above(29, 86400, "must be at least 30 and at most 86400 seconds")]
BurnTime = Annotated[float, above(0, 86400, "must be above 0 and at most 86400 seconds")]
Accepted = Annotated[
    tuple[str, ...],
    ValueRule(
        lambda value: "PASS" in value and set(value) <= _ACCEPTABLE,
        "must list PASS and may add INCONCLUSIVE or SKIPPED",
    ),
]
Depth = Annotated[str, ValueRule(lambda value: value in (QUICK, FULL, BURN), "must be quick, full or burn")]
PhaseName = Annotated[str, ValueRule(lambda value: value in NAMES, f"must be one of {', '.join(NAMES)}")]
TopicArn = Annotated[
    str, ValueRule(lambda value: re.fullmatch(_TOPIC, value) is not None, "must be the ARN of an SNS topic")
]

PubsubTopic = Annotated[
    str,
    ValueRule(
        lambda value: re.fullmatch(_PUBSUB_TOPIC, value) is not None,
        "must be a Pub/Sub topic, projects/PROJECT/topics/TOPIC",
    ),
]


@dataclass(frozen=True)
class ExpectedBusbw:
    """A sourced all-reduce figure: GB/s at `size_bytes` over `nodes` nodes."""

    value: Positive
    nodes: Count
    size_bytes: Count
    source: Text
    kind: Text


@dataclass(frozen=True)
class StorageTarget:
    """A folder to measure: its name, its path in the pod, and its declared rate in MB/s."""

    name: Text
    path: Text
    write_mb_s: Annotated[float, above(0, math.inf, "must be a number above 0, in MB/s")] | None = None
    source: Text | None = None


@dataclass(frozen=True)
class PeakTflops:
    """Declared dense peak of one accelerator in TFLOPS at a data type."""

    value: Positive
    dtype: Text
    source: Text


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One validated plan. USD per hour for all nodes together, times in seconds, slowdown as a ratio.

    `rails` are the network interfaces that carry training traffic, in order, each of `rail_gbit_s`;
    `network_gbit_s` is the sum of a node's. `phases` limits a run to some of its depth's phases. `burn_s` are
    the seconds of sustained work at the depth `burn`. A `preemptible` run may be stopped at any time: its
    result is SKIPPED, no error. `alert_topic_arn` is the SNS topic, `alert_pubsub_topic` the Pub/Sub topic
    for a message when a run outside of deploys fails or regresses.
    """

    stack: Text
    nodes: Count
    ranks_per_node: Count | None
    instance_type: Text
    gpus_per_node: Whole
    fabric: Fabric
    cloud: Text
    region: Text
    profile: Text
    owner: Text
    team: Text
    cost_center: Text
    hourly_cost_usd: Cost | None
    min_scaling_efficiency: Efficiency
    max_straggler_slowdown: Slowdown
    expected_busbw_gb_s: ExpectedBusbw | None
    timeout_s: Limit
    accept: Accepted
    image: Text
    code_sha256: Text
    dataset: Text
    task: Text
    seed: Whole
    git_sha: Text | None = None
    deploy_id: Text | None = None
    depth: Depth = QUICK
    phases: tuple[PhaseName, ...] | None = None
    burn_s: BurnTime | None = None
    rails: tuple[Text, ...] = ()
    rail_gbit_s: Rate | None = None
    network_gbit_s: Rate | None = None
    storage: tuple[StorageTarget, ...] = ()
    peak_tflops: PeakTflops | None = None
    baseline: Mapping[str, object] | None = None
    hang_timeout_s: Patience = 30.0
    join_timeout_s: Patience = 120.0
    preemptible: bool = False
    alert_topic_arn: TopicArn | None = None
    alert_pubsub_topic: PubsubTopic | None = None

    @property
    def chosen_phases(self) -> tuple[str, ...]:
        """The phases this plan runs, in order."""
        return chosen(self.depth, self.phases)

    def seconds(self, phase: str) -> float:
        """Budget of a phase in seconds."""
        return self.burn_s or 0.0 if phase == BURN else PHASE[phase].seconds(self.depth)

    def opens(self, verdict: Verdict) -> bool:
        """Return whether the plan accepts the verdict; FAIL and ERROR are never accepted."""
        return verdict not in (Verdict.FAIL, Verdict.ERROR) and str(verdict) in self.accept

    def exit_code(self, verdict: Verdict) -> int:
        """Return 0 for a verdict that opens the gate (the awaited Job succeeds), else its own code."""
        return 0 if self.opens(verdict) else EXIT_CODES[verdict]

    def cost_usd(self, seconds: float) -> float | None:
        """Price of the machine time in USD; None when the hourly price is unknown."""
        return None if self.hourly_cost_usd is None else self.hourly_cost_usd * seconds / 3600

    @property
    def alerts(self) -> bool:
        """Report whether findings of the run are sent as an alert."""
        return self.alert_topic_arn is not None or self.alert_pubsub_topic is not None

    @property
    def partial(self) -> bool:
        """Report whether the plan omits phases of its depth: such a run does not validate a stack."""
        return set(self.chosen_phases) < set(chosen(self.depth, None))


@dataclass(frozen=True)
class KillSchedule:
    """Victim and step of the kill, in a run of `steps` steps with a checkpoint every `every` steps."""

    victim: int
    step: int
    steps: int
    every: int


RESUME_STEPS = 24
CHECKPOINT_EVERY = 4
NEXT_STEPS = 8  # further steps of the uninterrupted run, for the comparison of losses after the resume


def kill_schedule(seed: int, world: int) -> KillSchedule:
    """Derive victim and step from the seed.

    The step lies after the second checkpoint, so that there is one to fall back to, and before the last.
    """
    dice = random.Random(seed)  # noqa: S311 - a reproducible choice, not a secret
    victim = dice.randrange(world)
    step = dice.randrange(2 * CHECKPOINT_EVERY + 1, RESUME_STEPS - CHECKPOINT_EVERY)
    return KillSchedule(victim, step, RESUME_STEPS, CHECKPOINT_EVERY)


def parse(text: str) -> Plan:
    """Read a plan document; DocumentError lists every problem as `path: got value; rule`."""
    document = parsed(text, "plan")
    # The same seed on every node, and another one for every distinct plan.
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).digest()
    values = {"seed": int.from_bytes(digest[:4], "big"), **document}
    problems = [] if values.pop("schema", None) == SCHEMA else [f'schema: must be "{SCHEMA}"']
    plan = read(Plan, values, problems)
    problems += _burn_problems(plan) if plan is not None else []
    try:
        if isinstance(document.get("baseline"), dict):
            baseline.parse(document["baseline"])
    except DocumentError as error:
        problems += error.problems
    if problems or plan is None:
        raise DocumentError(problems)
    return plan


def _burn_problems(plan: Plan) -> list[str]:
    if (plan.depth == BURN) != (plan.burn_s is not None):
        return [f"burn_s: got {plan.burn_s}; must be given with depth burn, and only with it"]
    needed = (plan.burn_s or 0.0) + plan.join_timeout_s + BURN_MARGIN_S
    rule = f"must be at least {needed:g}: burn_s, join_timeout_s and {BURN_MARGIN_S:g} seconds"
    return [f"timeout_s: got {plan.timeout_s:g}; {rule}"] if plan.burn_s and plan.timeout_s < needed else []


def located(plan: Plan, environment: Mapping[str, str]) -> Plan:
    """Return the plan with `$NAME` in storage paths expanded: a job's folder is only known inside it.

    Raises DocumentError for every variable that the environment does not have.
    """
    missing = [
        f"storage[{number}].path: got {json.dumps(target.path)}; ${name} is not in the environment"
        for number, target in enumerate(plan.storage)
        for name in Template(target.path).get_identifiers()
        if not environment.get(name)
    ]
    if missing:
        raise DocumentError(missing)
    found = tuple(
        dataclasses.replace(target, path=Template(target.path).safe_substitute(environment))
        for target in plan.storage
    )
    return dataclasses.replace(plan, storage=found)


def for_device(plan: Plan, environment: Mapping[str, str]) -> Plan:
    """Limit the plan to this device: on CPUs instead of planned accelerators to the quick depth.

    A full run's additional checks are about accelerators, which a rehearsal lacks.
    """
    forced = environment.get("SMOKE_DEVICE") == "cpu" and plan.gpus_per_node > 0
    return dataclasses.replace(plan, depth=QUICK, burn_s=None) if forced else plan


def render(plan: Plan) -> str:
    """Return the plan as a document that `parse` reads back to an equal plan."""
    return json.dumps({"schema": SCHEMA, **dataclasses.asdict(plan)}, indent=1)


def local_plan(
    ranks: int, depth: str = QUICK, only: tuple[str, ...] | None = None, burn_s: float | None = None
) -> Plan:
    """The plan of `run --ranks N`: one node, this machine, no expectations of its fabric.

    The minimum efficiency is below a cluster's 0.8: here ranks and their communication threads share CPUs.
    """
    unknown = (
        "stack", "instance_type", "cloud", "region", "owner", "team", "cost_center", "image", "code_sha256",
    )  # fmt: skip
    document = {
        "schema": SCHEMA,
        **dict.fromkeys(unknown, "local"),
        "nodes": 1,
        "ranks_per_node": ranks,
        "gpus_per_node": 0,
        "fabric": Fabric.TCP,
        "profile": "quick",
        "hourly_cost_usd": None,
        "min_scaling_efficiency": 0.7,
        "max_straggler_slowdown": 1.15,
        "expected_busbw_gb_s": None,
        "timeout_s": 600 + (burn_s or 0),
        "burn_s": burn_s,
        "accept": ["PASS"],
        "dataset": "synthetic",
        "task": "local-validation",
        "seed": 20261121,
        "depth": depth,
        "phases": only,
    }
    return parse(json.dumps(document))
