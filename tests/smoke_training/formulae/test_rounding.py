import struct
from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.formulae import rounding


def single(value: float) -> float:
    """The value as float32 keeps it."""
    found: float = struct.unpack("f", struct.pack("f", value))[0]
    return found


def added(values: Iterable[float]) -> float:
    """Their sum in float32, one after the other."""
    total = 0.0
    for value in values:
        total = single(total + value)
    return total


@given(st.integers(2, 40), st.integers(1, 5), st.randoms(use_true_random=False))
def test_no_order_of_additions_moves_a_sum_further_than_the_bound(
    tokens: int, world: int, dice: Random
) -> None:
    ranks = [[single(dice.random()) for _ in range(tokens)] for _ in range(world)]
    parts = added(added(row) for row in ranks)
    every = [value for row in ranks for value in row]
    dice.shuffle(every)
    whole = added(every)
    assert abs(parts - whole) <= rounding.apart("float32", tokens * world) * max(parts, whole)
    again = added(dice.sample([added(dice.sample(row, tokens)) for row in ranks], world))
    assert abs(parts - again) <= rounding.apart("float32", tokens + world) * max(parts, again)


@given(st.integers(1, 10**7), st.integers(1, 100), st.sampled_from(list(rounding.UNIT_ROUNDOFF)))
def test_the_bound_grows_with_terms_and_steps_and_never_exceeds_the_certain_one(
    terms: int, steps: int, dtype: str
) -> None:
    found = rounding.training(dtype, terms=terms, steps=steps)
    assert rounding.training(dtype, terms=terms + 1, steps=steps) > found
    assert rounding.training(dtype, terms=terms, steps=steps + 1) > found
    assert found <= 2 * terms * steps * rounding.UNIT_ROUNDOFF[dtype]


@pytest.mark.parametrize(("dtype", "roundings"), [("float8", 3), ("float32", 0)])
def test_what_has_no_bound_is_refused(dtype: str, roundings: int) -> None:
    with pytest.raises(ValueError, match=f"{roundings} roundings of {dtype}"):
        rounding.apart(dtype, roundings)
