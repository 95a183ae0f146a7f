"""Messages between the launchers of a run, and the early end of a run.

All times are monotonic; silence counts in observed time, in which a pause of this very process (a stopped
launcher, a suspended machine) lasts at most a second.
"""

from dataclasses import dataclass

from smoke_training.runtime.control.vitals import LOOK_AT_MOST_S, Vital

BEAT_S = 0.5
TICK_S = 0.05
SETTLE_S = 5.0  # for joined nodes to match, for example while a driver is loading
FAREWELL_S = 15.0  # for the other nodes' last reports

Line = dict[str, object]


class RunEndedError(RuntimeError):
    """The run cannot continue: a deadline passed, a signal arrived, a node is missing, a rank hangs."""


@dataclass(frozen=True, kw_only=True)
class NodeReport:
    """Report of a launcher about its own node while its ranks run."""

    vitals: tuple[Vital, ...] = ()
    planned: bool = False  # the planned kill has happened here
    torchrun: int | None = None
    torchrun_stopped_s: float = 0.0
    oom_kills: int | None = None

    @property
    def urgent(self) -> tuple[object, ...]:
        """Fields whose changes are sent to node 0 at once."""
        dead = tuple((v.rank, v.status, v.gone, v.code) for v in self.vitals if v.gone or v.status == "BROKE")
        return (dead, self.planned, self.torchrun)


@dataclass(frozen=True, kw_only=True)
class Over:
    """Outcome of a run, sent by node 0."""

    verdict: str
    headline: str
    exit_code: int


class ObservedTime:
    """Time in which the calling process was running: a gap between two calls counts at most 1 s."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._total = 0.0

    def at(self, now: float) -> float:
        """Observed seconds so far; `now` is a monotonic time."""
        if self._last is not None:
            self._total += min(max(0.0, now - self._last), LOOK_AT_MOST_S)
        self._last = now
        return self._total
