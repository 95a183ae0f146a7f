"""Prometheus metrics of capacity windows; standard library only."""

from collections.abc import Callable, Mapping
from datetime import datetime

from agents.shared.exposition import PrometheusMetric, Sample, text

from .windows import CapacityWindow

_OPEN = "trainstack_capacity_window_open"
_TURNS = "trainstack_capacity_window_turns_timestamp_seconds"
_ANSWERS = "trainstack_capacity_window_answers_total"


class Measures:
    """Per pool: whether it is open, when that changes, and how many jobs were admitted and deactivated."""

    def __init__(self, windows: Mapping[str, CapacityWindow], clock: Callable[[], datetime]) -> None:
        self._windows, self._clock = windows, clock
        self._answers: dict[tuple[str, str], int] = {}

    def count(self, pool: str, *, welcome: bool) -> None:
        """Count a job that was admitted or deactivated."""
        key = pool, "welcome" if welcome else "away"
        self._answers[key] = self._answers.get(key, 0) + 1

    def text(self) -> str:
        """The metrics in the text format of Prometheus."""
        now = self._clock()
        # Where hours apply to some classes, the metric is for these.
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
        turn = "When it closes, or where it is closed, opens. No sample: never."
        return text(
            [
                PrometheusMetric(
                    _OPEN, "gauge", opened,
                    "Whether jobs that the windows of a pool apply to may use it now.",
                ),
                PrometheusMetric(_TURNS, "gauge", turns, turn),
                PrometheusMetric(
                    _ANSWERS, "counter", answers,
                    "Jobs that were admitted, and jobs that were deactivated or stopped.",
                ),
            ]
        )  # fmt: skip
