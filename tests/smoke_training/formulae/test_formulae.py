import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.formulae.alphabeta import fit_alpha_beta, theil_sen
from smoke_training.formulae.bandwidth import algbw_gb_s, bus_factor, busbw_gb_s


@pytest.mark.parametrize(("ranks", "factor"), [(2, 1.0), (4, 1.5), (16, 1.875)])
def test_bus_bandwidth_is_algorithm_bandwidth_times_what_each_byte_travels(ranks: int, factor: float) -> None:
    assert busbw_gb_s(2 * 10**9, 1.0, ranks) == pytest.approx(2.0 * factor)


@pytest.mark.parametrize(
    ("collective", "value"),
    [("all_reduce", 487.87), ("all_gather", 243.94), ("reduce_scatter", 243.94), ("all_to_all", 243.94)],
)
def test_every_collective_has_its_own_factor(collective: str, value: float) -> None:
    """260.2 GB/s of algorithm bandwidth over 16 ranks: the all-reduce row of NVCRE's AWS H100 report."""
    assert busbw_gb_s(260_200_000_000, 1.0, 16, collective) == pytest.approx(value, abs=0.01)


def test_one_rank_has_no_bus_bandwidth_rather_than_zero() -> None:
    assert busbw_gb_s(1024, 1.0, 1) is None


def test_an_unknown_collective_is_refused() -> None:
    with pytest.raises(ValueError, match="'gather'; known: all_reduce"):
        bus_factor("gather", 2)


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


SIZES = [1 << power for power in range(10, 25, 2)]


@given(st.floats(1e-6, 1e-2), st.floats(1e8, 1e12), st.integers(0, len(SIZES) - 1), st.floats(1.0, 10.0))
def test_one_slowed_size_does_not_move_the_robust_slope(
    latency: float, rate: float, wild: int, factor: float
) -> None:
    sizes = [size * 4096 for size in SIZES]  # 4 MiB .. 64 GiB: enough of them limited by bandwidth
    times = [latency + size / rate for size in sizes]
    times[wild] *= factor
    _, slope = theil_sen(list(zip(sizes, times, strict=True)))
    if sum(size / rate > 3 * latency for size in sizes) >= 5:
        assert 1 / slope == pytest.approx(rate, rel=0.35)


@given(st.lists(st.floats(0.7, 1.5), min_size=8, max_size=8))
def test_noise_of_small_sizes_says_nothing_about_the_slope(noise: list[float]) -> None:
    """Sizes whose time is all latency differ by noise, up to a half of it; the large ones are exact."""
    times = [
        5e-3 * share if size < 1 << 19 else 5e-3 + size / 1e9
        for size, share in zip(SIZES, noise, strict=True)
    ]
    _, slope = theil_sen(list(zip(SIZES, times, strict=True)))
    assert 1 / slope == pytest.approx(1e9, rel=0.35)


@given(st.floats(1e-6, 1e-2), st.floats(1e8, 1e12))
def test_both_estimates_agree_where_the_model_holds(latency: float, rate: float) -> None:
    fit = fit_alpha_beta([(size, latency + size / rate) for size in SIZES])
    assert fit.robust_bandwidth_gb_s == pytest.approx(fit.bandwidth_gb_s, rel=1e-6)
    assert fit.robust_latency_s == pytest.approx(latency, rel=1e-3)
    half = fit.half_size_bytes
    assert half is not None
    assert half / (latency + half / rate) == pytest.approx(rate / 2, rel=1e-3)


def test_a_flat_sweep_has_no_bandwidth() -> None:
    flat = fit_alpha_beta([(1024, 2e-3), (1 << 20, 1e-3)])
    assert (flat.bandwidth_gb_s, flat.robust_bandwidth_gb_s) == (None, None)
    assert flat.half_size_bytes is None


def test_a_fit_needs_two_sizes() -> None:
    with pytest.raises(ValueError, match="two different sizes"):
        fit_alpha_beta([(1024, 1e-3), (1024, 2e-3)])
    with pytest.raises(ValueError, match="two different sizes"):
        theil_sen([(1024, 1e-3), (1024, 2e-3)])
