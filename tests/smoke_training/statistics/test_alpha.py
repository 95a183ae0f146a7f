import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training import verdict
from smoke_training.statistics import estimators, straggler
from smoke_training.statistics.estimators import FAMILY_ALPHA, critical_z, decision_alpha, decision_z


def test_the_shares_of_all_comparisons_at_all_looks_add_up_to_the_familys_error() -> None:
    spent = 0.0
    for _ in estimators.DECIDING_CHECKS:
        for _ in range(4 * straggler.STATISTICS):
            for _ in range(straggler.LOOKS):
                spent += decision_alpha(comparisons=4 * straggler.STATISTICS, looks=straggler.LOOKS)
    assert spent == pytest.approx(FAMILY_ALPHA)


def test_every_check_with_a_share_is_one_that_is_judged() -> None:
    assert len(set(estimators.DECIDING_CHECKS)) == len(estimators.DECIDING_CHECKS)
    assert set(estimators.DECIDING_CHECKS) <= {rule.id for rule in verdict.RULES}


@given(st.integers(1, 5000), st.integers(1, 50))
def test_more_comparisons_or_looks_ask_for_stronger_evidence(comparisons: int, looks: int) -> None:
    base = decision_z(comparisons=comparisons, looks=looks)
    assert decision_z(comparisons=comparisons + 1, looks=looks) > base
    assert decision_z(comparisons=comparisons, looks=looks + 1) > base


@given(st.floats(1e-12, 0.499))
def test_the_quantile_has_the_tail_it_was_asked_for(alpha: float) -> None:
    assert math.erfc(critical_z(alpha) / math.sqrt(2)) / 2 == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1])
def test_a_level_outside_zero_and_one_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="0 and 1"):
        critical_z(alpha)


@pytest.mark.parametrize(("comparisons", "looks"), [(0, 1), (1, 0)])
def test_a_check_without_comparisons_is_refused(comparisons: int, looks: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        decision_alpha(comparisons=comparisons, looks=looks)
