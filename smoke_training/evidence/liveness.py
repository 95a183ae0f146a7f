"""Records of the ranks' liveness, as observed by their launchers."""

from dataclasses import dataclass

from smoke_training.evidence.registry import Record, kind


@dataclass(frozen=True, kw_only=True)
class RankLife:
    """One rank at the last look; `longest_idle_s` is its longest time without a heartbeat."""

    rank: int
    node: int
    status: str  # RUNNING | DONE | BROKE
    phase: str
    attempt: int
    sequence: int
    beats: int
    longest_idle_s: float


@kind("liveness")
class Liveness(Record):
    """The watch over all ranks of a run. Seconds are observed time: a pause of the watcher does not count."""

    watched_s: float
    looks: int
    hang_timeout_s: float
    ranks: tuple[RankLife, ...]


@kind("hung")
class Hung(Record):
    """A process that is alive without progress.

    `how`: stopped (by a signal), behind (all others wait for it), silent (its launcher no longer reports),
    stalled (all ranks wait and none is behind). `rank` is None for a launcher, torchrun or all ranks.
    `sequence` counts the exchanges of all ranks that this one has entered, `foremost` is the highest count.
    """

    how: str
    what: str  # rank | launcher | torchrun | gang (all ranks)
    rank: int | None = None
    node: int | None = None
    phase: str | None
    sequence: int | None = None
    foremost: int | None = None
    state: str | None = None
    idle_s: float
    busy_s: float = 0.0
    limit_s: float


@kind("killed")
class Killed(Record):
    """A process that ended unexpectedly, without a report. `signal` is None when unknown."""

    what: str  # rank | launcher | torchrun
    rank: int | None = None
    node: int
    phase: str | None
    sequence: int | None = None
    pid: int | None = None
    signal: int | None = None
    oom_kills: int | None  # of the node's memory limit since the run began; None: not reported by the kernel


@kind("never_started")
class NeverStarted(Record):
    """A planned rank from which no heartbeat was ever received."""

    rank: int
    node: int
    attempt: int
    waited_s: float
