"""Checkpoints kept, for any history."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.instrumentation.retention import Retention, retention

HISTORIES = st.dictionaries(st.integers(0, 500), st.floats(0, 1e6), max_size=40)
POLICIES = st.builds(Retention, keep_last=st.integers(1, 8), keep_every_s=st.none() | st.floats(1, 1e5))


@given(HISTORIES, POLICIES)
def test_the_latest_stay_and_what_is_kept_was_written(written: dict[int, float], policy: Retention) -> None:
    kept = policy.kept(written)
    assert kept <= written.keys()
    assert policy.keep_last is not None
    assert set(sorted(written)[-policy.keep_last :]) <= kept
    assert bool(kept) == bool(written)


@given(HISTORIES, POLICIES)
def test_pruning_again_gives_up_nothing_more(written: dict[int, float], policy: Retention) -> None:
    kept = policy.kept(written)
    assert policy.kept({step: written[step] for step in kept}) == kept


@given(st.integers(1, 200), st.integers(1, 5), st.integers(1, 10))
def test_pruning_as_a_run_goes_on_keeps_what_pruning_at_its_end_would(
    count: int, last: int, period: int
) -> None:
    """One checkpoint a second, pruned after each: milestones of the past are never lost on the way."""
    policy = Retention(keep_last=last, keep_every_s=float(period))
    there: dict[int, float] = {}
    for step in range(count):
        there[step] = float(step)
        there = {each: there[each] for each in policy.kept(there)}
    assert there.keys() == policy.kept({step: float(step) for step in range(count)})
    assert len(there) <= last + count // period + 1


def test_a_period_keeps_its_first() -> None:
    policy = Retention(keep_last=2, keep_every_s=3600)
    half_hours = {step: step * 1800.0 for step in range(9)}
    assert policy.kept(half_hours) == {0, 2, 4, 6, 7, 8}


def test_without_a_word_of_the_stack_everything_stays() -> None:
    assert retention({}).kept({1: 0.0, 2: 1.0}) == {1, 2}
    assert retention({}).interval_s is None


def test_the_variables_of_a_pod_are_read() -> None:
    found = retention(
        {
            "TRAINSTACK_CHECKPOINT_KEEP_LAST": "3",
            "TRAINSTACK_CHECKPOINT_KEEP_EVERY_HOURS": "24",
            "TRAINSTACK_CHECKPOINT_INTERVAL_S": "1800",
        }
    )
    assert found == Retention(keep_last=3, keep_every_s=86400.0, interval_s=1800.0)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("KEEP_LAST", "0", "at least 1"),
        ("KEEP_LAST", "many", "many"),
        ("KEEP_EVERY_HOURS", "-1", "more than 0"),
        ("INTERVAL_S", "nan", "more than 0"),
    ],
)
def test_a_policy_that_keeps_nothing_or_cannot_be_read_is_refused(name: str, value: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        retention({f"TRAINSTACK_CHECKPOINT_{name}": value})
    assert f"TRAINSTACK_CHECKPOINT_{name}={value}" in str(refused.value)
