"""Times at which a pool may be used: a capacity block and hours of the week (UTC); standard library only."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Period:
    """The time from `opens` until before `closes`; None: it does not close."""

    opens: datetime
    closes: datetime | None


@dataclass(frozen=True)
class BlockPeriod:
    """Capacity from `starts` to `ends`; jobs are stopped `drain` before the end."""

    starts: datetime
    ends: datetime
    drain: timedelta

    def upcoming(self, now: datetime) -> Period | None:
        """The current or next period; None when it is over."""
        closes = self.ends - self.drain
        return Period(self.starts, closes) if now < closes else None


@dataclass(frozen=True)
class Hours:
    """Hours, less than a day, from `start` on the given days of `DAYS`."""

    days: Sequence[str]
    start: time
    length: timedelta

    def upcoming(self, now: datetime) -> Period | None:
        """The current or next period; None without days."""
        for offset in range(-1, 8):
            opens = datetime.combine((now + offset * _DAY).date(), self.start, UTC)
            if DAYS[opens.weekday()] in self.days and now < opens + self.length:
                return Period(opens, opens + self.length)
        return None


@dataclass(frozen=True)
class CapacityWindow:
    """The times at which jobs may use a pool."""

    pool: str
    """Name of the pool, for messages and metrics."""
    block: BlockPeriod | None
    """None: its nodes have no end date."""
    hours: Hours | None
    """None: at any time of the week."""
    classes: Sequence[str]
    """The priority classes that the hours apply to; others may use the pool at any time."""

    def upcoming(self, now: datetime, priority: str) -> Period | None:
        """The current or next period in which jobs of a class may use the pool.

        None: there is no further one.
        """
        held = self.hours if priority in self.classes else None
        limits = [one for one in (self.block, held) if one is not None]
        if not limits:
            return Period(now, None)
        at = now
        # Where the periods do not overlap, the search continues from the later beginning. A block begins only
        # once, so the third round is the last one.
        for _ in range(3):
            found = [each for one in limits if (each := one.upcoming(at))]
            if len(found) < len(limits):
                return None
            opens = max(each.opens for each in found)
            closes = min(each.closes for each in found if each.closes)
            if opens < closes:
                return Period(opens, closes)
            at = opens
        return None


def read(text: str) -> dict[str, CapacityWindow]:
    """The windows of the program's configuration, by the name of their AdmissionCheck (`checks.settings`)."""
    return {name: _window(row) for name, row in json.loads(text).items()}


def _window(row: Mapping[str, Any]) -> CapacityWindow:
    block, hours = row.get("block"), row.get("hours")
    return CapacityWindow(
        pool=row["pool"],
        block=BlockPeriod(
            moment(block["starts"]), moment(block["ends"]), timedelta(minutes=block["drain_minutes"])
        )
        if block
        else None,
        hours=Hours(hours["days"], time.fromisoformat(hours["start"]), timedelta(hours=hours["hours"]))
        if hours
        else None,
        classes=hours["classes"] if hours else (),
    )


def moment(text: str) -> datetime:
    """A time in RFC 3339, `2026-12-01T11:30:00Z`. Raises ValueError for one without an offset."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text} has no offset from UTC")
    return found.astimezone(UTC)
