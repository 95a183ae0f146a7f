"""GPU-hours of each hour of a day (UTC), from the times in which jobs held GPUs (pure)."""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

HOURS: Final = 24
_HOUR_S: Final = 3600

Hourly = Mapping[tuple[str, str], tuple[float, ...]]
"""GPU-hours of the 24 hours of a day, by pool and day; days without any are absent."""


@dataclass(frozen=True)
class HeldSpan:
    """GPUs of a pool that a job held; times in seconds since 1970."""

    pool: str
    gpus: int
    start: int
    end: int


def hourly(spans: Iterable[HeldSpan], first: int, until: int) -> Hourly:
    """The hours of spans between two times, in seconds since 1970."""
    found: dict[tuple[str, str], list[float]] = {}
    for one in spans:
        at, end = max(one.start, first), min(one.end, until)
        while at < end:
            stop = min(end, at - at % _HOUR_S + _HOUR_S)
            when = datetime.datetime.fromtimestamp(at, datetime.UTC)
            hours = found.setdefault((one.pool, f"{when:%Y-%m-%d}"), [0.0] * HOURS)
            hours[when.hour] += one.gpus * (stop - at) / _HOUR_S
            at = stop
    return {key: tuple(hours) for key, hours in sorted(found.items())}
