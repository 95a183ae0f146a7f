import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smoke_training.model import Verdict
from smoke_training.statistics.peers import block_medians, leave_one_out
from smoke_training.statistics.straggler import BLOCK, StragglerFinding, judge

MAX = 1.15


def ranks(
    count: int, iterations: int, sigma: float, burst: float, *, slow: dict[int, float], seed: int
) -> list[list[float]]:
    """Noise as machines have it: log-normal, with bursts of mean eight iterations at 1.5x."""
    dice = random.Random(seed)
    found = []
    for rank in range(count):
        left, row = 0, []
        for _ in range(iterations):
            if left == 0 and dice.random() < burst:
                left = 1 + int(dice.expovariate(1 / 8))
            noise = 1.5 if left else 1.0
            left = max(0, left - 1)
            row.append(0.02 * slow.get(rank, 1.0) * noise * dice.lognormvariate(0, sigma))
        found.append(row)
    return found


def sequential(compute: list[list[float]]) -> StragglerFinding:
    for looked_at in range(80, 401, 40):
        found = judge([row[:looked_at] for row in compute], MAX)
        if found.decision is not Verdict.INCONCLUSIVE:
            return found
    return found


@pytest.mark.parametrize(("count", "sigma", "burst"), [(2, 0.05, 0), (4, 0.1, 0.005), (8, 0.1, 0.005)])
def test_healthy_ranks_are_never_accused(count: int, sigma: float, burst: float) -> None:
    found = [sequential(ranks(count, 400, sigma, burst, slow={}, seed=seed)).decision for seed in range(40)]
    assert Verdict.FAIL not in found
    assert found.count(Verdict.PASS) >= 36


@pytest.mark.parametrize(("count", "sigma", "burst"), [(2, 0.05, 0), (4, 0.1, 0.005), (8, 0.1, 0.005)])
def test_a_rank_a_quarter_slower_is_named(count: int, sigma: float, burst: float) -> None:
    victim = count - 1
    found = [
        sequential(ranks(count, 400, sigma, burst, slow={victim: 1.25}, seed=seed)) for seed in range(30)
    ]
    failed = [item for item in found if item.decision is Verdict.FAIL]
    assert len(failed) >= 28
    assert {item.accused[0].rank for item in failed} == {victim}


def test_no_rank_is_accused_inside_the_indifference_zone() -> None:
    found = [sequential(ranks(4, 400, 0.05, 0, slow={1: 1.10}, seed=seed)).decision for seed in range(20)]
    assert Verdict.FAIL not in found


def test_a_rank_stopped_now_and_then_is_seen_although_most_of_its_steps_are_fast() -> None:
    compute = ranks(2, 80, 0.03, 0, slow={}, seed=1)
    for index in range(0, 80, 5):
        compute[1][index] += 0.1  # a tenth of a second per five steps of 20 ms: half the speed
    found = judge(compute, MAX)
    assert all(score.value < 1.05 for score in judge(ranks(2, 80, 0.03, 0, slow={}, seed=1), MAX).scores)
    assert (found.decision, found.accused[0].rank, found.accused[0].statistic) == (Verdict.FAIL, 1, "total")
    assert found.accused[0].value == pytest.approx(2.0, rel=0.1)


def test_a_rank_stopped_rarely_is_neither_accused_nor_acquitted_at_once() -> None:
    compute = ranks(2, 80, 0.03, 0, slow={}, seed=1)
    for index in (5, 33, 57, 71):  # half of the blocks, by half a block's length
        compute[1][index] += 0.1
    found = judge(compute, MAX)
    assert all(score.high < MAX for score in found.scores)  # by the medians it would pass
    assert found.decision is Verdict.INCONCLUSIVE


def test_a_slowdown_of_all_ranks_accuses_none() -> None:
    compute = ranks(4, 80, 0.03, 0, slow={}, seed=3)
    common = [1 + index % 7 for index in range(80)]
    compute = [[value * factor for value, factor in zip(row, common, strict=True)] for row in compute]
    assert judge(compute, MAX).decision is Verdict.PASS


@settings(max_examples=40)
@given(st.integers(2, 6), st.floats(0.001, 1000), st.integers(0, 1000))
def test_scores_do_not_depend_on_the_unit_of_time(count: int, unit: float, seed: int) -> None:
    compute = ranks(count, 80, 0.05, 0, slow={}, seed=seed)
    scaled = [[value * unit for value in row] for row in compute]
    plain, other = judge(compute, MAX), judge(scaled, MAX)
    assert [s.value for s in other.scores] == pytest.approx([s.value for s in plain.scores], rel=1e-6)


@settings(max_examples=40)
@given(st.lists(st.floats(0.001, 10), min_size=2, max_size=8))
def test_leave_one_out_compares_with_the_others_only(values: list[float]) -> None:
    raised = [values[0] * 3, *values[1:]]
    assert leave_one_out(raised)[0] == pytest.approx(leave_one_out(values)[0] + math.log(3))


def test_incomplete_blocks_are_not_used() -> None:
    compute = ranks(2, 89, 0.05, 0, slow={}, seed=1)
    assert len(block_medians(compute, BLOCK)[0]) == 8


@pytest.mark.parametrize("compute", [[[1.0] * 20], [[1.0] * 20, [1.0] * 19], [[1.0] * 5] * 2])
def test_what_cannot_be_compared_is_refused(compute: list[list[float]]) -> None:
    with pytest.raises(ValueError, match=r"peers|same number"):
        judge(compute, MAX)
