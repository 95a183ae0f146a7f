"""What Prometheus is told about windows; standard library only."""

from collections.abc import Callable, Mapping
from datetime import datetime

from agents.shared.exposition import Metric, Sample, text

from .windows import Window

_OPEN = "trainstack_capacity_window_open"
_TURNS = "trainstack_capacity_window_turns_timestamp_seconds"
_ANSWERS = "trainstack_capacity_window_answers_total"


class Measures:
    """Whether each pool is open, when that changes, and how many jobs were let in and sent away."""

    def __init__(self, windows: Mapping[str, Window], clock: Callable[[], datetime]) -> None:
        self._windows, self._clock = windows, clock
        self._answers: dict[tuple[str, str], int] = {}

    def count(self, pool: str, *, welcome: bool) -> None:
        """One more job was let in, or sent away."""
        key = pool, "welcome" if welcome else "away"
        self._answers[key] = self._answers.get(key, 0) + 1

    def text(self) -> str:
        """In the text format of Prometheus."""
        now = self._clock()
        # Where hours hold some classes, it is said for these.
        found = {one.pool: one.upcoming(now, next(iter(one.classes), "")) for one in self._windows.values()}
        opened: list[Sample] = [
            ({"pool": pool}, int(period is not None and period.opens <= now))
            for pool, period in found.items()
        ]
        turns: list[Sample] = [
            ({"pool": pool}, round(moment.timestamp()))
            for pool, period in found.items()
            if period and (moment := period.closes if period.opens <= now else period.opens)
        ]
        answers: list[Sample] = [
            ({"pool": pool, "answer": answer}, count)
            for (pool, answer), count in sorted(self._answers.items())
        ]
        turn = "When it closes, or where it is closed, opens. No sample: it never does."
        return text(
            [
                Metric(
                    _OPEN, "gauge", opened,
                    "Whether jobs that are held to the windows of a pool may use it now.",
                ),
                Metric(_TURNS, "gauge", turns, turn),
                Metric(
                    _ANSWERS, "counter", answers,
                    "Jobs that were let in, and jobs that were sent away or stopped.",
                ),
            ]
        )  # fmt: skip
