"""Types of a result: verdicts, checks, measures, expectations, culprits (pure)."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Self

SCHEMA = "trainstack.smoke/1"
PLAN = "the run plan"  # source of a user's declarations


class Verdict(StrEnum):
    """Outcome of one check or of the whole run, in the order of exit codes: PASS 0 .. SKIPPED 4.

    Only PASS opens a gate unless its policy lists others.
    """

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"
    SKIPPED = "SKIPPED"


EXIT_CODES: Mapping[Verdict, int] = {verdict: code for code, verdict in enumerate(Verdict)}
WORST_FIRST = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS)  # of parts that were judged


class Cause(StrEnum):
    """Kind of a culprit's fault; `unknown` if the evidence does not identify it."""

    QUOTA = "quota"
    CLOCK = "clock"
    NOISY_HOST = "noisy_host"
    NOT_RUNNING = "not_running"
    SLOW_COMPUTE = "slow_compute"
    EXPOSED_COMMUNICATION = "exposed_communication"
    LOSS = "loss"
    HALF_RATE_LINK = "half_rate_link"
    SLOW_LINK = "slow_link"
    DEAD_RAIL = "dead_rail"
    TCP_FALLBACK = "tcp_fallback"
    SLOW_STORAGE = "slow_storage"
    DISK_FULL = "disk_full"
    TORN_CHECKPOINT = "torn_checkpoint"
    STATE_LOST = "state_lost"
    CORRUPTION = "corruption"
    GPU_FAILED = "gpu_failed"
    NAN = "nan"
    KILLED = "killed"
    HUNG = "hung"
    NEVER_JOINED = "never_joined"
    WRONG_WORLD_SIZE = "wrong_world_size"
    MISCONFIGURED = "misconfigured"
    MISMATCH = "mismatch"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measured figure. `ci` is the 95 % interval; a null value or interval carries its `reason`."""

    value: float | None
    unit: str
    n: int
    estimator: str
    ci: tuple[float, float] | None = None
    spread: float | None = None
    reason: str | None = None
    detail: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def count(cls, found: int, unit: str, n: int, of: str = "", **detail: object) -> Self:
        """A number of faults in `n` looks; `of` says what is counted."""
        estimator = f"count of {of}" if of else "count"
        return cls(value=float(found), unit=unit, n=n, estimator=estimator, detail=detail)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Reference of a figure. `kind` is its certainty; `unknown` judges nothing."""

    value: float | None
    kind: str  # published | derived | declared | baseline | exact | unknown
    source: str
    floor: float | None = None
    reason: str | None = None

    @classmethod
    def exactly(cls, value: float, source: str, floor: float | None = None) -> Self:
        """A value required on every machine."""
        return cls(value=value, kind="exact", source=source, floor=floor)

    @classmethod
    def unknown(cls, reason: str, source: str = PLAN) -> Self:
        """No reference for a figure."""
        return cls(value=None, kind="unknown", source=source, reason=reason)


@dataclass(frozen=True)
class Culprit:
    """An accused part of the stack, with cause, evidence and score."""

    kind: str  # rank | node | link | nic | storage | stack
    id: str  # rank "2", node "1", link "0-2", nic "1/eth1", storage "checkpoints@1", stack "transport"
    cause: Cause
    evidence: tuple[str, ...]
    _: KW_ONLY
    node: str | None = None
    score: float | None = None
    ci: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Check:
    """One judged measure. `message` is a full sentence with the figures; `next_action` is one action.

    A judge leaves `id` to its rule. `required` is false where the check gates nothing, as one that could not
    be made here.
    """

    status: Verdict
    message: str
    id: str = ""
    required: bool = True
    measured: Measured | None = None
    expected: Expected | None = None
    zone: tuple[float, float] | None = None
    noise: Mapping[str, float | None] = field(default_factory=dict)
    culprits: tuple[Culprit, ...] = ()
    next_action: str | None = None

    @classmethod
    def skipped(cls, why: str, id: str = "") -> Self:
        """A check that is not applicable here, and gates nothing."""
        return cls(id=id, status=Verdict.SKIPPED, message=why, required=False)

    @classmethod
    def reported(cls, message: str, why: str, measured: Measured) -> Self:
        """A figure that gates nothing; `why` it cannot be judged."""
        expected = Expected.unknown(f"{why}; reported, not judged")
        return cls(status=Verdict.SKIPPED, message=message, measured=measured, expected=expected)

    @property
    def short_id(self) -> str:
        """The id without its family: `training.straggler` -> `straggler`."""
        return self.id.rpartition(".")[2]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """All checks of a run with the overall verdict they imply."""

    verdict: Verdict
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()

    @property
    def decisive(self) -> Check | None:
        """The first required check with the overall verdict, for headlines."""
        return next((c for c in self.checks if c.required and c.status == self.verdict), None)


def counted(count: int, noun: str) -> str:
    """A number of things as text: `1 node`, `2 nodes`."""
    return f"{count} {noun}{'s' * (count != 1)}"
