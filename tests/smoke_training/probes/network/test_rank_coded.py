import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.probes.network.rank_coded import BITS, PERIOD, Error, chunk_of, sums, suspects, words

RANKS = st.integers(2, 64)


def altered(rank: int, salt: int, place: int, mask: int) -> Error:
    """What a changed word of a rank does to a sum."""
    word = words(rank, 0, salt)[place]
    return Error(0, salt, place, (word ^ mask) - word)


@given(RANKS, st.integers(0, 63), st.integers(0, 9))
def test_words_of_two_ranks_have_nothing_in_common_and_their_sums_fit_int64(
    ranks: int, chunk: int, salt: int
) -> None:
    for place in range(PERIOD):
        known = {words(rank, chunk, salt)[place] for rank in range(ranks)}
        assert len(known) == ranks
        assert 0 < sum(known) == sums(ranks, chunk, salt)[place] < 2**63


def test_words_change_with_chunk_salt_and_place() -> None:
    known = {word for chunk in range(4) for salt in range(4) for word in words(1, chunk, salt)}
    assert len(known) == 16 * PERIOD


def test_sixteen_thousand_ranks_still_sum_exactly() -> None:
    assert (1 << BITS) * 2**14 < 2**63


@given(st.data(), RANKS)
def test_a_missing_or_doubled_word_names_its_rank_at_once(data: st.DataObject, ranks: int) -> None:
    rank, place = data.draw(st.integers(0, ranks - 1)), data.draw(st.integers(0, PERIOD - 1))
    word = words(rank, 0)[place]
    assert suspects([Error(0, 0, place, -word)], ranks) == (rank,)
    assert suspects([Error(0, 0, place, word)], ranks) == (rank,)


@given(st.data(), st.integers(2, 16), st.integers(1, (1 << BITS) - 1))
def test_bits_changed_alike_in_several_words_name_the_rank_that_sent_them(
    data: st.DataObject, ranks: int, mask: int
) -> None:
    """Any set of bits: with 20 errors an innocent rank explains them alike once in 2^19 times at most."""
    rank = data.draw(st.integers(0, ranks - 1))
    assert suspects([altered(rank, salt, 42, mask) for salt in range(20)], ranks) == (rank,)


@given(st.data(), st.integers(2, 16))
def test_single_bits_changed_at_random_name_the_rank_that_sent_them(data: st.DataObject, ranks: int) -> None:
    rank, dice = data.draw(st.integers(0, ranks - 1)), random.Random(data.draw(st.integers()))
    errors = [altered(rank, salt, 7, 1 << dice.randrange(BITS)) for salt in range(40)]
    assert suspects(errors, ranks) == (rank,)


def test_one_changed_bit_fits_every_rank_that_could_have_changed_it() -> None:
    word = words(1, 0)[5]
    accused = suspects([altered(1, 0, 5, 1)], 8)
    assert 1 in accused
    assert set(accused) == {rank for rank in range(8) if (words(rank, 0)[5] ^ word) & 1 == 0}


def test_the_same_error_seen_by_every_receiver_counts_once() -> None:
    one = altered(1, 0, 5, 1)
    assert suspects([one] * 8, 8) == suspects([one], 8)


def test_arbitrary_sums_accuse_no_rank() -> None:
    dice = random.Random(3)
    assert suspects([Error(0, 0, place, dice.randrange(-(1 << 50), 1 << 50)) for place in range(9)], 4) == ()
    assert suspects([Error(0, 0, 0, dice.randrange(1 << 40))], 4) == ()
    assert suspects([], 4) == ()


@pytest.mark.parametrize(("index", "chunk"), [(0, 0), (24, 0), (25, 1), (99, 3)])
def test_an_element_lies_in_one_of_as_many_chunks_as_there_are_ranks(index: int, chunk: int) -> None:
    assert chunk_of(index, 100, 4) == chunk
