import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.expected import lookup, tables
from smoke_training.formulae import mfu


def test_flops_per_token_of_a_published_model() -> None:
    # torchtitan's count for Llama 3 8B at 8192 tokens (32 layers, width 4096, 128,256 tokens of vocabulary):
    # 6 x (8.03e9 - 0.525e9) + 12 x 32 x 4096 x 8192.
    found = mfu.flops_per_token(
        parameters=8_030_261_248, embedding_parameters=525_336_576, layers=32, width=4096, context=8192
    )
    assert found == pytest.approx(4.503e10 + 1.2885e10, rel=1e-3)


def test_the_model_at_its_peak_has_utilisation_one() -> None:
    assert mfu.mfu(flops_per_token=1e9, tokens_per_second=989e3 * 8, devices=8, peak_tflops=989) == 1.0


@given(st.floats(1e3, 1e12), st.floats(1, 1e7), st.integers(1, 10_000), st.floats(1, 5000))
def test_twice_the_devices_halve_the_utilisation(
    flops: float, rate: float, devices: int, peak: float
) -> None:
    one = mfu.mfu(flops_per_token=flops, tokens_per_second=rate, devices=devices, peak_tflops=peak)
    two = mfu.mfu(flops_per_token=flops, tokens_per_second=rate, devices=2 * devices, peak_tflops=peak)
    assert two == pytest.approx(one / 2)


@pytest.mark.parametrize(
    ("model", "peak", "word"),
    [
        ("bfloat16", None, "no_peak"),
        ("float32", "bf16", "float32"),
        ("float8_e4m3fn", "fp8", "fp8"),
        ("bfloat16", "fp8", "fp8"),
        ("torch.bfloat16", "mxfp8", "fp8"),
    ],
)
def test_no_utilisation_is_stated_without_a_peak_of_the_same_kind(
    model: str, peak: str | None, word: str
) -> None:
    assert word in (mfu.without_peak(model, peak) or "")


@pytest.mark.parametrize(("model", "peak"), [("bfloat16", "bf16"), ("torch.float32", "float32")])
def test_names_of_one_data_type_are_one(model: str, peak: str) -> None:
    assert mfu.without_peak(model, peak) is None


def test_impossible_models_are_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        mfu.flops_per_token(parameters=10, embedding_parameters=11, layers=1, width=1, context=1)
    with pytest.raises(ValueError, match="positive"):
        mfu.mfu(flops_per_token=1, tokens_per_second=0, devices=1, peak_tflops=1)


@pytest.mark.parametrize(
    ("device", "tflops"),
    [
        ("NVIDIA A100-SXM4-80GB", 271.2),
        ("NVIDIA A100-PCIE-40GB", 252.9),
        ("NVIDIA H100 80GB HBM3", 794.5),
        ("NVIDIA B200", 1745.0),
        ("NVIDIA GB200", 1822.0),  # another chip: its name only contains that of the B200
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA H100 NVL", None),
        ("cpu", None),
    ],
)
def test_achievable_rates_are_looked_up_by_the_drivers_names_and_never_guessed(
    device: str, tflops: float | None
) -> None:
    found = lookup.achievable(tables.shipped(), device, "bfloat16")
    assert (found.tflops if found else None) == tflops
    assert lookup.achievable(tables.shipped(), device, "float32") is None


def test_every_achievable_rate_has_a_source_and_a_date() -> None:
    rows = tables.shipped().accelerators
    assert len(rows) >= 6
    assert all(row.source.text and row.source.date for row in rows)
