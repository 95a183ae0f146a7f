"""The bound on a wait from past waits: as often right as it says, also while jobs still wait."""

import datetime
import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trainstack.queues.samples import NOW, hours
from trainstack.queues.bound import CONFIDENCE, QUANTILE, Wait, fewest, needed, wait_bound


def test_the_least_rank_is_that_of_the_binomial_distribution() -> None:
    # Brevik, Nurmi, Wolski (PPoPP 2006): 59 waits are needed, and then it is the longest.
    assert fewest() == needed(59) == 59
    assert needed(58) is None
    for count in (59, 93, 200, 500):
        k = needed(count)
        assert k is not None

        def below(least: int, count: int = count) -> float:
            return math.fsum(
                math.comb(count, j) * QUANTILE**j * (1 - QUANTILE) ** (count - j) for j in range(least)
            )

        assert below(k) >= CONFIDENCE > below(k - 1)


def past(waits: list[float]) -> list[Wait]:
    """Waits in hours, of jobs that were all submitted long ago, one a minute."""
    old = NOW - hours(10_000)
    return [
        Wait(old + datetime.timedelta(minutes=index), hours(waited)) for index, waited in enumerate(waits)
    ]


def test_with_fewer_waits_than_needed_nothing_is_known() -> None:
    assert wait_bound([], NOW) is None
    assert wait_bound(past([1.0] * 58), NOW) is None
    found = wait_bound(past([1.0] * 59), NOW)
    assert found is not None and (found.wait, found.waits) == (hours(1), 59)


DRAWS: dict[str, Callable[[random.Random], float]] = {
    "exponential": lambda chance: chance.expovariate(1.0),
    "lognormal": lambda chance: chance.lognormvariate(0.0, 2.0),
}


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("count", [59, 150])
def test_it_holds_for_as_many_waits_as_it_says(kind: str, count: int) -> None:
    chance, draw = random.Random(1), DRAWS[kind]
    exact = {"exponential": -math.log(1 - QUANTILE), "lognormal": math.exp(2.0 * 1.6448536)}[kind]
    rounds = 300
    right = 0
    for _ in range(rounds):
        found = wait_bound(past([draw(chance) for _ in range(count)]), NOW)
        assert found is not None
        right += found.wait >= hours(exact)
    # 95 % confidence, less what 300 rounds leave open (3 standard deviations).
    assert right / rounds >= CONFIDENCE - 3 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / rounds)


def test_jobs_that_still_wait_are_neither_short_waits_nor_absent() -> None:
    quick = past([0.5] * 200)
    # Twenty that came with them still wait: more than 5 % waited longer than half an hour.
    assert wait_bound([*quick, *(Wait(one.submitted, None) for one in quick[:20])], NOW) is None
    # Twenty that came five minutes ago say nothing about half an hour.
    fresh = [Wait(NOW - hours(1 / 12), None)] * 20
    found = wait_bound([*quick, *fresh], NOW)
    assert found is not None and (found.wait, found.waits) == (hours(0.5), 200)


def test_after_a_change_only_the_newest_waits_count() -> None:
    found = wait_bound(past([0.1] * 400 + [5.0] * 3), NOW)
    assert found is not None and (found.wait, found.waits) == (hours(5), 59)


@given(st.lists(st.floats(0, 100), min_size=59, max_size=90), st.randoms())
def test_the_order_of_the_history_does_not_matter(waits: list[float], chance: random.Random) -> None:
    history = past(waits)
    shuffled = history[:]
    chance.shuffle(shuffled)
    assert wait_bound(history, NOW) == wait_bound(shuffled, NOW)
