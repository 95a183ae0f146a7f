"""Intervals of proportions, against published figures and by their meaning."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.wilson import clopper_pearson, wilson

COUNTS = st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # Newcombe 1998, "Two-sided confidence intervals for the single proportion", Stat. Med. 17, table I,
        # method 3 (score method without continuity correction).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_published_intervals(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson(successes, trials) == pytest.approx((low, high), abs=6e-5)


def test_all_of_200_prove_98_percent_and_not_more() -> None:
    assert wilson(200, 200) == pytest.approx((0.9812, 1.0), abs=1e-4)


@given(COUNTS)
def test_the_ends_are_where_the_score_statistic_equals_z(counts: tuple[int, int]) -> None:
    successes, trials = counts
    low, high = wilson(successes, trials)
    share = successes / trials
    assert 0.0 <= low <= share <= high <= 1.0
    for end in (low, high):
        if 0.0 < end < 1.0:
            score = abs(share - end) / math.sqrt(end * (1 - end) / trials)
            assert score == pytest.approx(1.960, rel=1e-5)


@given(COUNTS)
def test_success_and_failure_mirror_each_other(counts: tuple[int, int]) -> None:
    successes, trials = counts
    low, high = wilson(successes, trials)
    assert wilson(trials - successes, trials) == pytest.approx((1 - high, 1 - low))


def test_no_trial_proves_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("successes", "trials", "z"), [(-1, 5, 1.96), (6, 5, 1.96), (1, 5, 0.0)])
def test_impossible_counts_are_refused(successes: int, trials: int, z: float) -> None:
    with pytest.raises(ValueError, match="got"):
        wilson(successes, trials, z)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # Newcombe 1998, table I, method 5 (Clopper-Pearson, exact).
        (81, 263, 0.2527, 0.3676),
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0, 0.1684),
        (1, 29, 0.0009, 0.1776),
    ],
)
def test_published_exact_intervals(successes: int, trials: int, low: float, high: float) -> None:
    assert clopper_pearson(successes, trials) == pytest.approx((low, high), abs=6e-5)


@given(COUNTS.filter(lambda counts: counts[1] <= 300))
def test_an_exact_interval_holds_the_share_and_mirrors(counts: tuple[int, int]) -> None:
    successes, trials = counts
    low, high = clopper_pearson(successes, trials)
    assert low <= successes / trials <= high
    mirrored = clopper_pearson(trials - successes, trials)
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), abs=1e-9)


def test_without_a_trial_nothing_is_known() -> None:
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="successes"):
        clopper_pearson(3, 2)
