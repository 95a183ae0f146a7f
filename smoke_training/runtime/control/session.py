"""What the launchers of a run tell each other, and how a run ends before its time.

All times are monotonic; silence counts in observed time, in which a pause of this very process (a stopped
launcher, a suspended machine) lasts at most a second.
"""

from dataclasses import dataclass

from smoke_training.runtime.control.vitals import LOOK_AT_MOST_S, Vital

BEAT_S = 0.5
TICK_S = 0.05
SETTLE_S = 5.0  # for nodes that are all there to become alike: a driver that is still loading, say
FAREWELL_S = 15.0  # for the other nodes' last reports

Line = dict[str, object]


class RunEndedError(RuntimeError):
    """The run cannot go on: a deadline passed, a signal arrived, a node is missing, a rank hangs."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a launcher tells of its own node while its ranks run."""

    vitals: tuple[Vital, ...] = ()
    planned: bool = False  # the kill that the plan asks for has been done here
    torchrun: int | None = None
    torchrun_stopped_s: float = 0.0
    oom_kills: int | None = None

    @property
    def urgent(self) -> tuple[object, ...]:
        """What node 0 should know at once when it changes."""
        dead = tuple((v.rank, v.status, v.gone, v.code) for v in self.vitals if v.gone or v.status == "BROKE")
        return (dead, self.planned, self.torchrun)


@dataclass(frozen=True, kw_only=True)
class Over:
    """How a run ended, as node 0 tells the others."""

    verdict: str
    headline: str
    exit_code: int


class ObservedTime:
    """Time in which the process that asks has been running: a gap between two calls counts at most 1 s."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._total = 0.0

    def at(self, now: float) -> float:
        """Observed seconds so far; `now` is a monotonic time."""
        if self._last is not None:
            self._total += min(max(0.0, now - self._last), LOOK_AT_MOST_S)
        self._last = now
        return self._total
