import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.statistics import changepoint


def blocks(count: int, sigma: float, seed: int, *, change: float = 1.0, at: int = 0) -> list[float]:
    dice = random.Random(seed)
    return [dice.gauss(0, sigma) + (math.log(change) if i >= at else 0) for i in range(count)]


@pytest.mark.parametrize(("change", "at"), [(1.2, 8), (1.3, 10), (0.7, 6), (2.0, 16)])
def test_a_lasting_change_is_found_where_it_is(change: float, at: int) -> None:
    for seed in range(20):
        found = changepoint.find(blocks(20, 0.02, seed, change=change, at=at))
        assert found is not None
        assert found.block == at
        assert found.ratio == pytest.approx(change, rel=0.05)


def test_series_without_a_change_have_none() -> None:
    found = [
        changepoint.find(blocks(n, sigma, seed))
        for n in (8, 12, 40)
        for sigma in (0.01, 0.1)
        for seed in range(200)
    ]
    assert found.count(None) >= len(found) - 1  # level 1e-4, 1200 series


@given(st.floats(0.93, 1.07), st.integers(4, 16), st.integers(0, 100))
def test_less_than_a_tenth_is_no_drift(change: float, at: int, seed: int) -> None:
    assert changepoint.find(blocks(20, 0.005, seed, change=change, at=at)) is None


def test_a_burst_that_passes_is_no_drift() -> None:
    series = blocks(40, 0.02, 1)
    series[20:23] = [value + 0.4 for value in series[20:23]]
    assert changepoint.find(series) is None


def test_few_blocks_prove_nothing() -> None:
    assert changepoint.find(blocks(7, 0.001, 1, change=3.0, at=4)) is None


def test_more_series_share_the_level() -> None:
    faint = next(
        series
        for series in (blocks(10, 0.03, seed, change=1.2, at=5) for seed in range(500))
        if changepoint.find(series) is not None and changepoint.find(series, series=10_000) is None
    )
    assert len(faint) == 10
