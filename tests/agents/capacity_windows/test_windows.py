"""Opening times of pools: blocks, hours of the week, and both together."""

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.capacity_windows.windows import DAYS, BlockPeriod, CapacityWindow, Hours, Period, moment, read
from components.kubernetes.capacity.args import settings

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)  # a Tuesday
_H = timedelta(hours=1)
BLOCK = BlockPeriod(NOON, NOON + 48 * _H, timedelta(minutes=40))
NIGHTS = Hours(DAYS, time(20), 10 * _H)

moments = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC))
hours = st.builds(
    Hours,
    st.lists(st.sampled_from(DAYS), min_size=1, unique=True),
    st.times(),
    st.integers(1, 23).map(lambda count: count * _H),
)
blocks = st.builds(
    lambda starts, length: BlockPeriod(starts, starts + length, timedelta(minutes=40)),
    moments,
    st.timedeltas(_H, timedelta(days=182)),
)


def window(block: BlockPeriod | None = None, hours: Hours | None = None, *classes: str) -> CapacityWindow:
    return CapacityWindow("h100", block, hours, classes or ("sweep",))


def test_a_block_closes_before_its_end_and_never_opens_again() -> None:
    closes = NOON + timedelta(hours=47, minutes=20)
    for now in (NOON - 100 * _H, NOON, closes - timedelta(seconds=1)):
        assert window(BLOCK).upcoming(now, "default") == Period(NOON, closes)
    assert window(BLOCK).upcoming(closes, "default") is None


def test_hours_go_on_past_midnight_and_hold_only_the_classes_that_are_named() -> None:
    nightly = window(None, NIGHTS)
    found = nightly.upcoming(NOON, "sweep")
    assert found == Period(NOON + 8 * _H, NOON + 18 * _H)
    # At three in the night the hours that began yesterday are on.
    assert nightly.upcoming(NOON + 15 * _H, "sweep") == found
    assert nightly.upcoming(NOON, "production") == Period(NOON, None)


def test_only_days_that_are_named_begin_hours() -> None:
    weekend = Hours(("SA",), time(8), 10 * _H)
    assert weekend.upcoming(NOON) == Period(
        datetime(2026, 12, 5, 8, tzinfo=UTC), datetime(2026, 12, 5, 18, tzinfo=UTC)
    )


def test_hours_of_a_block_end_with_the_block() -> None:
    short = BlockPeriod(NOON, NOON + 12 * _H, timedelta(minutes=40))
    both = window(short, NIGHTS)
    assert both.upcoming(NOON, "sweep") == Period(NOON + 8 * _H, NOON + timedelta(hours=11, minutes=20))
    assert both.upcoming(NOON, "default") == Period(NOON, NOON + timedelta(hours=11, minutes=20))
    # A block without a night: never.
    assert window(BlockPeriod(NOON, NOON + 6 * _H, _H), NIGHTS).upcoming(NOON, "sweep") is None


@given(blocks, hours, moments)
def test_a_period_is_within_every_limit_and_not_over(block: BlockPeriod, hours: Hours, now: datetime) -> None:
    found = window(block, hours).upcoming(now, "sweep")
    if found is None:
        return
    assert found.closes and found.opens < found.closes and now < found.closes
    for limit in (block, hours):
        around = limit.upcoming(found.opens)
        assert around and around.closes
        assert around.opens <= found.opens and found.closes <= around.closes


@given(hours, moments)
def test_hours_come_within_a_week_and_no_moment_of_them_is_missed(limit: Hours, now: datetime) -> None:
    found = limit.upcoming(now)
    assert found and found.opens <= now + timedelta(days=7)
    assert DAYS[found.opens.weekday()] in limit.days and found.closes == found.opens + limit.length
    # Whenever it is open it says so, and a moment later it is still the same period.
    assert limit.upcoming(max(now, found.opens)) == found


def test_the_program_reads_what_a_stack_says() -> None:
    said = settings(
        {
            "Big": {
                "block": {
                    "starts": "2026-12-01T12:00:00Z",
                    "ends": "2026-12-03T13:00:00+01:00",
                    "drain_minutes": 40,
                },
                "hours": {"days": DAYS, "start": "20:00", "hours": 10, "classes": ["sweep"]},
            }
        }
    )
    assert read(said) == {
        "window-big": CapacityWindow("Big", BLOCK, Hours(list(DAYS), time(20), 10 * _H), ["sweep"])
    }


def test_a_time_without_an_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="offset"):
        moment("2026-12-01T12:00:00")
