from hypothesis import given
from hypothesis import strategies as st

from smoke_training.payload import contribution, expected_sum, suspects, windows


@given(st.integers(1, 300))
def test_every_rank_is_in_one_window_and_the_sums_fit_int64(ranks: int) -> None:
    found = list(windows(ranks))
    assert [rank for window in found for rank in window] == list(range(ranks))
    for window in found:
        total = sum(contribution(rank, window) for rank in range(ranks))
        assert total == expected_sum(window) < 2**63


@given(st.data())
def test_a_missing_or_doubled_contribution_names_its_rank(data: st.DataObject) -> None:
    window = next(windows(data.draw(st.integers(2, 62))))
    rank = data.draw(st.sampled_from(list(window)))
    right = expected_sum(window)
    assert suspects([right - contribution(rank, window)], window) == [rank]
    assert suspects([right + contribution(rank, window)], window) == [rank]
