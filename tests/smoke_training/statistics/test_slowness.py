import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.model import Verdict
from smoke_training.statistics import noise, peers, slowness


def rows(
    factors: list[float], n: int, seed: int, sigma: float = 0.15, bursts: float = 0.0
) -> list[list[float]]:
    """Times of nodes writing together: a common drift, own noise, own bursts of threefold times."""
    dice = random.Random(seed)
    found = []
    common = [dice.lognormvariate(0, 0.3) for _ in range(n)]
    for factor in factors:
        left, row = 0, []
        for i in range(n):
            left = max(left - 1, 0) or (8 if dice.random() < bursts else 0)
            row.append(0.005 * factor * common[i] * dice.lognormvariate(0, sigma) * (3 if left else 1))
        found.append(row)
    return found


def verdict(times: list[list[float]]) -> Verdict:
    return slowness.combined(slowness.factors(range(len(times)), times))


@pytest.mark.parametrize("nodes", [2, 3, 4, 8])
@pytest.mark.parametrize(("bursts", "repetitions"), [(0.0, 120), (0.003, 200), (0.01, 400)])
def test_healthy_nodes_are_never_accused_and_hardly_ever_undecided(
    nodes: int, bursts: float, repetitions: int
) -> None:
    found = [verdict(rows([1.0] * nodes, repetitions, seed, bursts=bursts)) for seed in range(40)]
    assert Verdict.FAIL not in found
    assert found.count(Verdict.PASS) >= 39


@pytest.mark.parametrize("nodes", [2, 3, 4, 8])
def test_one_node_at_half_rate_is_found_by_number(nodes: int) -> None:
    covered = 0
    for seed in range(30):
        scores = slowness.factors(range(nodes), rows([1.0] * (nodes - 1) + [2.0], 200, seed))
        slow = [score.node for score in scores if score.verdict is Verdict.FAIL]
        assert slow == [nodes - 1]
        assert scores[-1].low > 1.5
        covered += scores[-1].ci95[0] < 2.0 < scores[-1].ci95[1]
    assert covered >= 25  # of 30 intervals that should hold the truth 95 times in 100


def test_too_much_noise_is_undecided_not_slow() -> None:
    found = {verdict(rows([1.0, 1.0, 2.0], 16, seed, sigma=1.0)) for seed in range(20)}
    assert Verdict.FAIL not in found
    assert Verdict.INCONCLUSIVE in found


def test_a_node_that_stops_now_and_then_is_slow_although_its_median_is_not() -> None:
    times = rows([1.0, 1.0], 240, 5, sigma=0.02)
    times[1] = [value * (16 if i % 10 == 9 else 1) for i, value in enumerate(times[1])]
    assert not slowness.bursty(times)
    scores = slowness.factors((0, 1), times)
    assert (scores[1].verdict, scores[1].statistic) == (Verdict.FAIL, "total")
    assert scores[0].verdict is Verdict.PASS


def bucket(mb_s: float, mib: int, n: int, seed: int) -> list[float]:
    """Times of writes behind a token bucket of 0.1 s, as measured on a throttled loop device."""
    dice, tokens, row = random.Random(seed), 0.0, []
    for _ in range(n):
        size, seconds = mib * 1.048576, 0.001
        while tokens < size:
            wait = 0.1 * dice.uniform(0.9, 1.1)
            seconds, tokens = seconds + wait, tokens + mb_s * wait
        tokens = min(tokens - size, mb_s * 0.1)
        row.append(seconds)
    return row


@pytest.mark.parametrize("mib", [1, 2, 4])
def test_a_token_bucket_at_half_the_declared_rate_is_found_and_at_its_rate_passes(mib: int) -> None:
    declared_s = mib * 1.048576 / 80
    for seed in range(10):
        n = int(5 / declared_s)  # the slow one needs 10 s, what a probe takes at most
        times = [bucket(80, mib, n, seed), bucket(40, mib, n, seed + 100)]
        assert slowness.bursty(times)
        scores = slowness.factors((0, 1), times, declared_s)
        assert [score.verdict for score in scores] == [Verdict.PASS, Verdict.FAIL]
        assert {score.statistic for score in scores} == {"total"}
        # Two noisy series need more time to be sure; never is the slow node acquitted, or the other accused.
        peers = slowness.factors((0, 1), times)
        assert peers[0].verdict is Verdict.PASS
        assert peers[1].verdict is not Verdict.PASS
        alike = slowness.factors((0, 1), [times[0], bucket(80, mib, n, seed + 200)])
        assert [score.verdict for score in alike] == [Verdict.PASS] * 2


def test_ordinary_noise_is_not_a_burst() -> None:
    assert not slowness.bursty(rows([1.0] * 4, 200, 1, sigma=0.6))


def test_declared_rates_are_absolute() -> None:
    times = rows([1.0, 1.0], 120, 3, sigma=0.05)
    half = slowness.factors((0, 1), times, 0.0025)
    assert [score.verdict for score in half] == [Verdict.FAIL] * 2
    assert slowness.combined(slowness.factors((0, 1), times, 0.005)) is Verdict.PASS
    with pytest.raises(ValueError, match="declared"):
        slowness.factors((0,), times[:1], 0)


@given(st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=9))
def test_leave_one_out_agrees_with_its_definition(values: list[float]) -> None:
    logs = [math.log(v) for v in values]
    expected = [own - statistics.median(logs[:i] + logs[i + 1 :]) for i, own in enumerate(logs)]
    assert peers.leave_one_out(values) == pytest.approx(expected, abs=1e-9)


def test_waiting_for_a_cpu_is_not_the_storages_fault() -> None:
    assert noise.without_queue([[1.0, 2.0]], [[0.25, 1.9999]], parts=slowness.KEPT_PARTS) == [[0.75, 0.1]]
    assert noise.without_queue([[1.0]], None) == [[1.0]]


def test_bad_series_are_refused() -> None:
    with pytest.raises(ValueError, match="at least two"):
        slowness.factors((0,), [[1.0] * 20])
    with pytest.raises(ValueError, match="at least 8"):
        slowness.factors((0, 1), [[1.0] * 5] * 2)
    with pytest.raises(ValueError, match="same number"):
        slowness.factors((0, 1), [[1.0] * 20, [1.0] * 21])


def test_blocks_grow_with_the_series() -> None:
    assert [slowness.block_length(n) for n in (8, 31, 32, 79, 160, 500)] == [1, 1, 2, 4, 10, 10]
