import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.statistics.estimators import Z_REPORTED, student_quantile, trimmed_interval
from smoke_training.statistics.medians import median_interval

VALUES = st.lists(st.floats(-1e3, 1e3), min_size=5, max_size=60)


# scipy.stats.t.isf(scipy.stats.norm.sf(z), freedom) (scipy 1.16).
@pytest.mark.parametrize(
    ("z", "freedom", "exact"),
    [(1.959964, 10, 2.22814), (1.959964, 30, 2.04227), (2.326348, 20, 2.52798), (1.959964, 1, 12.7062)],
)
def test_the_student_quantile_is_the_exact_one(z: float, freedom: int, exact: float) -> None:
    assert student_quantile(z, freedom) == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("z", [0.5, 3.09, 4.3, 5.2, 6.5])
def test_the_student_quantile_agrees_with_closed_forms_in_the_far_tail(z: float) -> None:
    tail = math.erfc(z / math.sqrt(2)) / 2
    assert student_quantile(z, 1) == pytest.approx(1 / math.tan(math.pi * tail), rel=1e-6)
    two = (1 - 2 * tail) * math.sqrt(2 / (4 * tail * (1 - tail)))
    assert student_quantile(z, 2) == pytest.approx(two, rel=1e-6)


@given(st.floats(0, 6), st.integers(1, 500))
def test_the_student_quantile_is_odd_and_wider_than_the_normal_one(z: float, freedom: int) -> None:
    found = student_quantile(z, freedom)
    assert found >= z - 1e-6
    assert student_quantile(-z, freedom) == pytest.approx(-found)
    assert found >= student_quantile(z, freedom + 1) - 1e-6


@given(VALUES)
def test_the_interval_holds_its_estimate_and_the_estimate_lies_among_the_values(values: list[float]) -> None:
    found = trimmed_interval(values, Z_REPORTED)
    assert found.low <= found.estimate <= found.high
    assert min(values) - 1e-9 <= found.estimate <= max(values) + 1e-9


@given(VALUES, st.floats(-100, 100))
def test_shifting_all_values_shifts_the_interval(values: list[float], shift: float) -> None:
    found, moved = (trimmed_interval(v, Z_REPORTED) for v in (values, [value + shift for value in values]))
    assert moved.estimate == pytest.approx(found.estimate + shift, abs=1e-6)
    assert moved.high - moved.low == pytest.approx(found.high - found.low, abs=1e-6)


def test_one_wild_value_in_ten_does_not_move_the_trimmed_mean() -> None:
    assert trimmed_interval([1.0] * 9 + [1e6], Z_REPORTED).estimate == 1.0


def test_few_values_bound_nothing() -> None:
    assert trimmed_interval([1.0] * 4, Z_REPORTED).high == math.inf
    assert median_interval([1.0] * 5).low == -math.inf


@pytest.mark.parametrize("count", [10, 25])
def test_the_intervals_cover_as_promised(count: int) -> None:
    dice = random.Random(7)
    trimmed = median = 0
    for _ in range(600):
        sample = [dice.gauss(0, 1) for _ in range(count)]
        found, middle = trimmed_interval(sample, Z_REPORTED), median_interval(sample)
        trimmed += found.low <= 0 <= found.high
        median += middle.low <= 0 <= middle.high
    assert trimmed / 600 > 0.92
    assert median / 600 > 0.93


def test_the_median_interval_is_made_of_order_statistics() -> None:
    sample = [float(value) for value in range(15)]
    found = median_interval(sample)
    assert (found.low, found.estimate, found.high) == (3.0, statistics.median(sample), 11.0)


@pytest.mark.parametrize("count", [6, 15, 41, 1000, 5000])
def test_the_median_interval_covers_as_the_binomial_law_says(count: int) -> None:
    sample = [float(value) for value in range(count)]
    rank = round(median_interval(sample).low)
    covered = [sum(math.comb(count, k) for k in range(r + 1)) / 2**count for r in (rank, rank + 1)]
    assert covered[0] <= 0.025 < covered[1]
    # Near the normal approximation, which every textbook has.
    if count >= 1000:
        assert rank == pytest.approx(count / 2 - 0.98 * math.sqrt(count), abs=2)
