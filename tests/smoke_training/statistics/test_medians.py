import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.statistics.estimators import ACQUIT_ALPHA as TAIL
from smoke_training.statistics.medians import median_interval, warm_up


@given(st.lists(st.floats(0.1, 10), min_size=11, max_size=80))
def test_the_interval_misses_the_median_as_rarely_as_it_says(values: list[float]) -> None:
    found = median_interval(values, TAIL)
    ordered, count = sorted(values), len(values)
    assert found.low <= statistics.median(values) <= found.high
    rank = ordered.index(found.low)
    assert sum(math.comb(count, below) for below in range(rank + 1)) * 0.5**count <= TAIL


def test_with_nine_values_even_the_extremes_say_too_little() -> None:
    assert median_interval([1.0] * 9, TAIL).low == -math.inf
    assert median_interval([1.0] * 10, TAIL).low == 1.0
    with pytest.raises(ValueError, match="no values"):
        median_interval([], TAIL)


def test_it_misses_a_known_median_in_fewer_than_one_case_in_250() -> None:
    dice = random.Random(5)
    misses = 0
    for _ in range(3000):
        found = median_interval([dice.lognormvariate(0, 0.5) for _ in range(25)], TAIL)
        misses += not found.low <= 1.0 <= found.high
    assert misses <= 12


def test_a_slow_start_is_dropped_and_a_steady_one_is_kept() -> None:
    assert warm_up([9.0, 5.0, 2.0] + [1.0, 1.01, 0.99] * 4) == 3
    assert warm_up([1.0, 1.02, 0.98] * 5) == 0
    assert warm_up([9.0]) == 0


@given(st.lists(st.floats(1e-6, 10), min_size=1, max_size=60))
def test_never_more_than_a_fifth_is_dropped(seconds: list[float]) -> None:
    assert warm_up(seconds) <= len(seconds) / 5
