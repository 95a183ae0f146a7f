import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.formulae import youngdaly

HOUR = 3600.0
times = st.floats(min_value=1e-3, max_value=1e6)


def test_the_prior_gives_the_intervals_of_the_published_figures() -> None:
    assert pytest.approx(50_700, rel=1e-3) == youngdaly.PRIOR_GPU_HOURS
    small, large = youngdaly.prior_mtbf_s(64), youngdaly.prior_mtbf_s(1024)
    assert small / HOUR == pytest.approx(792, rel=1e-2)
    assert large / HOUR == pytest.approx(49.5, rel=1e-2)
    assert youngdaly.daly_interval_s(30, small) / HOUR == pytest.approx(3.6, rel=2e-2)
    assert youngdaly.daly_interval_s(30, large) / 60 == pytest.approx(54, rel=2e-2)


@given(cost=times, mtbf=times)
def test_daly_nears_young_when_failures_are_rare(cost: float, mtbf: float) -> None:
    young, daly = youngdaly.young_interval_s(cost, mtbf), youngdaly.daly_interval_s(cost, mtbf)
    assert daly > 0
    if cost < mtbf * 1e-6:
        assert daly == pytest.approx(young, rel=2e-3)
    if cost >= 2 * mtbf:
        assert daly == mtbf


@given(
    cost=st.floats(1e-3, 1.0), mtbf=st.floats(1e3, 1e6), factor=st.floats(0.1, 10).filter(lambda f: f != 1)
)
def test_no_other_interval_wastes_less_than_youngs(cost: float, mtbf: float, factor: float) -> None:
    best = youngdaly.young_interval_s(cost, mtbf)
    least = youngdaly.waste(best, cost, mtbf, 0)
    assert youngdaly.waste(best * factor, cost, mtbf, 0) >= least * (1 - 1e-12)
    assert least == pytest.approx(math.sqrt(2 * cost / mtbf))


def test_a_checkpoint_waits_for_the_one_before() -> None:
    advice = youngdaly.advise(stall_s=0.01, commit_s=900, mtbf_s=HOUR, restart_s=60)
    assert advice.daly_s < 900
    assert advice.interval_s == 900
    assert advice.waste == pytest.approx(0.01 / 900 + 900 / 7200 + 60 / 3600)


def test_impossible_times_are_refused() -> None:
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="positive"):
            youngdaly.daly_interval_s(bad, HOUR)
    with pytest.raises(ValueError, match="restart"):
        youngdaly.waste(10, 1, HOUR, -1)
    with pytest.raises(ValueError, match="at least one"):
        youngdaly.prior_mtbf_s(0)
