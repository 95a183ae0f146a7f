import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.formulae import (
    algbw_gb_s,
    busbw_gb_s,
    estimated_cost_usd,
    fit_alpha_beta,
    relative_difference,
    scaling_efficiency,
)


@pytest.mark.parametrize(("ranks", "factor"), [(2, 1.0), (4, 1.5), (16, 1.875)])
def test_bus_bandwidth_is_algorithm_bandwidth_times_what_each_byte_travels(ranks: int, factor: float) -> None:
    assert busbw_gb_s(2 * 10**9, 1.0, ranks) == pytest.approx(2.0 * factor)


def test_one_rank_has_no_bus_bandwidth_rather_than_zero() -> None:
    assert busbw_gb_s(1024, 1.0, 1) is None


def test_a_collective_that_took_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot take"):
        algbw_gb_s(1024, 0.0)


@given(st.floats(1e-6, 1e-2), st.floats(1e8, 1e12))
def test_the_fit_finds_the_latency_and_bandwidth_it_was_made_from(latency: float, rate: float) -> None:
    sizes = [1 << power for power in range(10, 31, 2)]
    fit = fit_alpha_beta([(size, latency + size / rate) for size in sizes])
    assert fit.latency_s == pytest.approx(latency, rel=1e-6)
    assert fit.bandwidth_gb_s == pytest.approx(rate / 1e9, rel=1e-6)
    assert fit.max_relative_residual < 1e-6


def test_a_flat_sweep_has_no_bandwidth() -> None:
    assert fit_alpha_beta([(1024, 2e-3), (1 << 20, 1e-3)]).bandwidth_gb_s is None


def test_a_fit_needs_two_sizes() -> None:
    with pytest.raises(ValueError, match="two different sizes"):
        fit_alpha_beta([(1024, 1e-3), (1024, 2e-3)])


def test_efficiency_and_difference() -> None:
    assert scaling_efficiency(0.9, 1.0) == pytest.approx(0.9)
    assert relative_difference(1.0, 1.0) == 0
    assert relative_difference(2.0, 1.0) == pytest.approx(0.5)
    assert relative_difference(math.nan, 1.0) == math.inf


def test_an_unknown_price_stays_unknown() -> None:
    assert estimated_cost_usd(None, 60) is None
    assert estimated_cost_usd(36.0, 100) == pytest.approx(1.0)
