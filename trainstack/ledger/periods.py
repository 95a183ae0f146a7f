"""Months and periods in UTC, and their overlap."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

HOUR: Final = datetime.timedelta(hours=1)
DAY: Final = datetime.timedelta(days=1)


@dataclass(frozen=True)
class TimeSpan:
    """From `start` to before `end`; None: open."""

    start: datetime.datetime | None
    end: datetime.datetime | None

    def within(self, start: datetime.datetime, end: datetime.datetime) -> "TimeSpan":
        """The part of it between two times; of length 0 where there is none."""
        first = start if self.start is None else max(start, self.start)
        last = end if self.end is None else min(end, self.end)
        return TimeSpan(first, max(first, last))

    def hours(self, start: datetime.datetime, end: datetime.datetime) -> float:
        """Hours of it between two times."""
        part = self.within(start, end)
        assert part.start is not None and part.end is not None
        return (part.end - part.start) / HOUR


ALWAYS: Final = TimeSpan(None, None)


def month_of(at: datetime.datetime | datetime.date) -> str:
    """The month of a time, such as 2026-11."""
    return f"{at:%Y-%m}"


def bounds(month: str) -> tuple[datetime.datetime, datetime.datetime]:
    """The first moment of a month, and of the next one. Raises ValueError for other texts."""
    start = datetime.datetime.fromisoformat(f"{month}-01").replace(tzinfo=datetime.UTC)
    return start, (start + 32 * DAY).replace(day=1)


def following(month: str, count: int = 1) -> str:
    """The month that is `count` months later; earlier for a negative count."""
    at = int(month[:4]) * 12 + int(month[5:]) - 1 + count
    return f"{at // 12:04}-{at % 12 + 1:02}"


def days(start: datetime.datetime, end: datetime.datetime) -> Iterator[datetime.datetime]:
    """The midnights of the days that a period touches."""
    at = start.replace(hour=0, minute=0, second=0, microsecond=0)
    while at < end:
        yield at
        at += DAY
