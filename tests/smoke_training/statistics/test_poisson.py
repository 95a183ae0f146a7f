import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.statistics.estimators import Z_DECISION
from smoke_training.statistics.links import CellState
from smoke_training.statistics.poisson import CLEAN, LOSSY, bounds, dispersion, rate, steady


@pytest.mark.parametrize(
    ("count", "low", "high"),
    # Exact 95 % limits of a Poisson mean (Garwood 1936, as tabled by Johnson, Kotz & Kemp).
    [(0, 0.0, 3.689), (1, 0.0253, 5.572), (5, 1.6235, 11.668), (10, 4.7954, 18.390), (50, 37.111, 65.919)],
)
def test_bounds_are_garwoods(count: int, low: float, high: float) -> None:
    found = bounds(count, z=1.959964)
    assert list(found) == pytest.approx([low, high], abs=0.005)


@given(st.integers(0, 5000))
def test_bounds_enclose_the_count_and_grow_with_it(count: int) -> None:
    low, high = bounds(count, Z_DECISION)
    assert low <= count <= high
    assert bounds(count + 1, Z_DECISION)[0] >= low
    assert bounds(count + 1, Z_DECISION)[1] > high


def test_the_approximation_continues_the_exact_bounds() -> None:
    exact, approximate = bounds(40, Z_DECISION), bounds(41, Z_DECISION)
    assert approximate[0] - exact[0] == pytest.approx(0.8, abs=0.3)
    assert approximate[1] - exact[1] == pytest.approx(1.2, abs=0.3)


def poisson(dice: random.Random, mean: float) -> int:
    limit, product, count = math.exp(-mean), dice.random(), 0
    while product > limit:
        product *= dice.random()
        count += 1
    return count


def test_a_clean_wire_is_never_accused_and_one_per_cent_always_is() -> None:
    dice = random.Random(7)
    segments = [2200] * 8
    for _ in range(500):
        clean = rate([poisson(dice, 2200 * 0.0001) for _ in segments], segments, Z_DECISION)
        assert clean.answer is not CellState.BAD
        lossy = rate([poisson(dice, 2200 * 0.01) for _ in segments], segments, Z_DECISION)
        assert lossy.answer is CellState.BAD
        assert lossy.low < 0.01 < lossy.high


def test_nothing_lost_is_clean_only_after_enough_segments() -> None:
    assert rate([0], [5_000], Z_DECISION).answer is CellState.OPEN
    assert rate([0, 0], [5_000, 5_000], Z_DECISION).answer is CellState.GOOD
    assert rate([0, 0], [5_000, 5_000], Z_DECISION).high < CLEAN


def test_the_limits_leave_no_rate_that_is_clean_and_lossy_at_once() -> None:
    assert CLEAN < LOSSY
    visits = [2200] * 200
    for events, answer in ((1, CellState.GOOD), (3, CellState.OPEN), (6, CellState.BAD)):
        assert rate([events] * 200, visits, Z_DECISION).answer is answer


# Needed retransmissions by visit of one cell, each of some 4,330 segments, as healthy shaped wires of 1 Gb/s
# had them on two busy cores: what the kernel counted less what the receivers reported as needless.
GIGABIT = (
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 13, 0),
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 102, 0),
    (0, 0, 0, 0, 55, 0, 19, 0, 0, 0),
    (0, 0, 0, 61, 0, 0, 0, 0, 0, 0),
    (0, 0, 0, 0, 0, 0, 0, 8, 0, 35),
)


@pytest.mark.parametrize("events", GIGABIT)
def test_bursts_of_a_busy_host_leave_a_wire_of_any_rate_clean(events: tuple[int, ...]) -> None:
    segments = [4330] * len(events)
    assert rate(events, segments, Z_DECISION).answer is CellState.OPEN
    assert rate(*steady(events, segments), Z_DECISION).answer is CellState.GOOD


def test_what_is_lost_in_every_visit_is_lost_without_the_worst_ones_too() -> None:
    dice = random.Random(5)
    segments = [2200] * 8
    for _ in range(200):
        lossy = [poisson(dice, 2200 * 0.01) for _ in segments]
        assert rate(*steady(lossy, segments), Z_DECISION).answer is CellState.BAD


def test_few_visits_are_all_kept_and_shares_count_not_numbers() -> None:
    assert steady([9, 0, 0, 0], [10, 10, 10, 10]) == ([9, 0, 0, 0], [10, 10, 10, 10])
    assert steady([9, 5, 0, 0, 0], [1000, 10, 10, 10, 10]) == ([9, 0, 0, 0], [1000, 10, 10, 10])


def test_one_burst_is_one_event_not_forty() -> None:
    segments = [2000] * 12
    assert rate([40] + [0] * 11, segments, Z_DECISION).answer is CellState.OPEN
    assert dispersion([40] + [0] * 11, segments) > 30
    assert rate([8] * 12, segments, Z_DECISION).answer is CellState.BAD


def test_what_cannot_be_judged_is_refused() -> None:
    with pytest.raises(ValueError, match="exposed"):
        rate([0], [0], Z_DECISION)
    with pytest.raises(ValueError, match="exposure"):
        rate([0, 1], [5], Z_DECISION)
    with pytest.raises(ValueError, match="count"):
        bounds(-1, Z_DECISION)
