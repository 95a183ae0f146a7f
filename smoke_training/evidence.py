"""What the ranks measured, as one JSON object per line (pure: parsing only).

Rank 0 appends a line as soon as a phase is complete, so that a run that dies later is still judged on what
it had. A line that cannot be read is remembered as such: the judge then reports ERROR instead of
overlooking it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from smoke_training.decode import decode


@dataclass(frozen=True, kw_only=True)
class RankFacts:
    """Where one rank runs and with what."""

    rank: int
    node: int
    host: str
    pid: int
    device: str
    backend: str
    python: str
    torch: str
    kernel: str
    cpus: int
    nccl: str | None
    gpu_memory_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class World:
    """The gang as it joined; `wanted` is the world size the plan asked for."""

    wanted: int
    ranks: tuple[RankFacts, ...]


@dataclass(frozen=True, kw_only=True)
class Collective:
    """All-reduce seconds, `seconds[size index][repetition]`, the maximum over ranks; wrong sums per size."""

    sizes: tuple[int, ...]
    seconds: tuple[tuple[float, ...], ...]
    payload_elements: int
    payload_suspects: Mapping[str, list[int]]  # size in bytes -> ranks accused by a wrong exact sum
    payload_wrong: Mapping[str, int]  # size in bytes -> number of wrong elements


@dataclass(frozen=True, kw_only=True)
class Training:
    """Per-iteration seconds, [rank][iteration].

    `compute` without any collective, `step` with the gradient all-reduce; `*_cpu` is the thread's own CPU
    time, `*_queue` the time it waited runnable for a CPU that something else held (None where the kernel
    does not say).
    """

    compute: tuple[tuple[float, ...], ...]
    compute_cpu: tuple[tuple[float, ...], ...]
    compute_queue: tuple[tuple[float, ...], ...] | None
    step: tuple[tuple[float, ...], ...]
    alone: tuple[float, ...]
    throttled_periods: int | None
    steal_share: float | None
    parameters: int
    gradient_bytes: int
    tokens_per_step: int


@dataclass(frozen=True, kw_only=True)
class Parity:
    """Loss of every step on N ranks and on one rank with the same global batch."""

    dtype: str
    many: tuple[float, ...]
    one: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The uninterrupted run: its loss per step and what a checkpoint cost."""

    losses: tuple[float, ...]
    checkpoint_seconds: tuple[float, ...]  # maximum over ranks, fsync included
    checkpoint_bytes: int  # sum over ranks
    entries: int


@dataclass(frozen=True, kw_only=True)
class RankResume:
    """What one rank found when it compared the resumed state with the uninterrupted run at the same step."""

    rank: int
    entries: int
    different: tuple[str, ...]
    losses_compared: int
    losses_equal: int
    torn_offered: tuple[str, ...]
    torn_accepted: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Resume:
    """The interruption and the recovery."""

    victim: int
    signal: int
    killed_at_step: int
    resumed_from: int
    every: int
    mttr_seconds: float
    ranks: tuple[RankResume, ...]


@dataclass(frozen=True, kw_only=True)
class RankUsage:
    """Resources of one rank's last process; a killed process takes its figures with it."""

    rank: int
    cpu_seconds: float
    max_rss_bytes: int
    gpu_memory_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An exception that ended a rank."""

    rank: int
    phase: str
    message: str


@dataclass
class Evidence:
    """Everything read so far; absent parts are None."""

    world: World | None = None
    collective: Collective | None = None
    training: Training | None = None
    parity: Parity | None = None
    reference: Reference | None = None
    resume: Resume | None = None
    usage: tuple[RankUsage, ...] = ()
    failures: list[Failure] = field(default_factory=list)
    stopped_early: str | None = None
    finished: bool = False
    unreadable: list[str] = field(default_factory=list)


def parse(lines: Iterable[str]) -> Evidence:
    """Read evidence lines; never raises for their content, records what it could not read."""
    found = Evidence()
    for number, line in enumerate(lines, 1):
        try:
            _apply(found, json.loads(line))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            found.unreadable.append(f"evidence line {number}: {type(error).__name__}: {error}")
    return found


def kind_of(line: str) -> str:
    """The kind of one evidence line, for progress reports."""
    try:
        return str(json.loads(line)["kind"])
    except (ValueError, KeyError, TypeError):
        return "unreadable"


def _apply(found: Evidence, line: dict[str, object]) -> None:
    kind = line.pop("kind")
    match kind:
        case "world":
            found.world = decode(World, line)
        case "collective":
            found.collective = decode(Collective, line)
        case "training":
            found.training = decode(Training, line)
        case "parity":
            found.parity = decode(Parity, line)
        case "reference":
            found.reference = decode(Reference, line)
        case "resume":
            found.resume = decode(Resume, line)
        case "usage":
            found.usage += decode(tuple[RankUsage, ...], line["ranks"])
        case "failure":
            found.failures.append(decode(Failure, line))
        case "stopped_early":
            found.stopped_early = decode(str, line["reason"])
        case "finished":
            found.finished = True
        case _:
            raise ValueError(f"unknown kind {kind!r}")
