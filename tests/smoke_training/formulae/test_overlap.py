"""The efficiency that an all-reduce allows, by hand and against published rates."""

import pytest

from smoke_training.formulae import overlap

MIB = 1 << 20


def test_a_time_lies_on_the_line_between_measured_sizes() -> None:
    measured = [(16 * MIB, 1e-3), (64 * MIB, 2e-3)]
    assert overlap.seconds_of(32 * MIB, measured) == pytest.approx(2**0.5 * 1e-3)
    assert overlap.seconds_of(1, measured) == 1e-3
    assert overlap.seconds_of(128 * MIB, measured) == pytest.approx(4e-3)
    with pytest.raises(ValueError, match="no all-reduce"):
        overlap.seconds_of(1, [])


def test_what_is_reduced_during_the_backward_pass_is_hidden_and_the_last_bucket_is_not() -> None:
    measured = [(MIB, 0.1), (2 * MIB, 0.2)]
    free = overlap.allowed(30.0, (MIB, MIB), measured)
    assert free.best == pytest.approx(30 / 30.1)
    assert free.line == pytest.approx(30 / (30 + 0.2 / 0.9))
    bound = overlap.allowed(3.0, (MIB, MIB), [(MIB, 10.0)])
    assert bound.best == pytest.approx(3 / (1 + 1 + 20))  # forward, half of the backward pass, both buckets
    assert bound.floor == pytest.approx(3 / ((22 + 23) / 2))


def test_buckets_close_when_they_have_reached_the_limit() -> None:
    assert overlap.bucket_sizes((20 * MIB, 20 * MIB, 4 * MIB)) == (40 * MIB, 4 * MIB)
    assert overlap.even_buckets(60 * MIB) == (25 * MIB, 25 * MIB, 10 * MIB)
    assert overlap.bucket_sizes((7,)) == overlap.even_buckets(7) == (7,)
