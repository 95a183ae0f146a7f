"""Memory against what the papers themselves say of their models."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainstack.advice.assumptions import assumptions
from trainstack.advice.memory import need, shape
from trainstack.advice.question import METHODS, Question

GIB_IN_GB = 2**30 / 1e9


def test_a_model_of_7_5_billion_needs_120_gb_and_1_9_on_each_of_64_gpus() -> None:
    """ZeRO (arXiv 1910.02054), figure 1: baseline and stage 3, 64-way."""
    found = need(Question(7.5e9, 1e9))
    assert found.state_gb == 120
    assert found.state_gb / 64 == pytest.approx(1.9, abs=0.05)


def test_qlora_of_65_billion_fits_a_gpu_of_48_gb_and_plain_lora_does_not() -> None:
    """QLoRA (arXiv 2305.14314), abstract."""
    assert (
        need(Question(65e9, 1e9, "qlora", 512)).on_each(1)
        < 48
        < need(Question(65e9, 1e9, "lora", 512)).on_each(1)
    )


@pytest.mark.parametrize(
    ("parameters", "layers", "width"),
    [(6.7e9, 32, 4096), (13e9, 40, 5120), (65.2e9, 80, 8192)],  # LLaMA (arXiv 2302.13971), table 2
)
def test_a_shape_is_near_that_of_known_models(parameters: float, layers: int, width: int) -> None:
    found = shape(parameters)
    assert found[0] == pytest.approx(layers, rel=0.15)
    assert found[1] == pytest.approx(width, rel=0.15)


@given(st.floats(1e6, 1e12), st.sampled_from(METHODS), st.integers(1, 131072))
def test_more_gpus_never_need_more_on_each(parameters: float, method: str, context: int) -> None:
    found = need(Question(parameters, 1e9, method, context))  # type: ignore[arg-type]  # of METHODS
    assert found.on_each(1) > found.on_each(2) > found.on_each(64) > found.activations_gb > 0


def test_the_arithmetic_shows_its_figures() -> None:
    found = need(Question(7e9, 1e9, "qlora"))
    assert "7,000,000,000 frozen x 0.516" in found.arithmetic and "14,000,000 of adapters" in found.arithmetic


def test_every_assumption_has_a_source_and_a_day() -> None:
    assert len(assumptions()) > 10
    assert all(row.source and row.date and row.unit and row.says for row in assumptions().values())
