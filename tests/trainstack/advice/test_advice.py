"""Advice compared with known runs and with the common table of GPUs by model size."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.catalog.gcp import facts
from infra.errors import UserError
from trainstack.advice import Advice, Question, Run, advise
from trainstack.advice.machines import CLOUDS, OF_CLOUD

SMALL = {"T4", "A10G", "L4", "L40S"}
LARGE = {"A100 40GB", "A100 80GB", "H100 80GB", "H100 80GB (Mega)", "H200 141GB", "B200", "B300"}


def of(advice: Advice, machine: str) -> Run:
    """The run on a machine type; it must be among those that fit."""
    fitting = [advice.best, *advice.others] if advice.best else []
    return next(run for run in fitting if run.machine.name == machine)


@pytest.mark.parametrize(
    ("parameters", "machine", "tokens", "gpu_hours"),
    [
        (7e9, "p4de.24xlarge", 2e12, 184_320),  # Llama 2 7B (arXiv 2307.09288), table 2
        (70e9, "p4de.24xlarge", 2e12, 1_720_320),  # Llama 2 70B, the same table
        (8e9, "p5.48xlarge", 15e12, 1_300_000),  # Llama 3 8B, its model card
        (70e9, "p5.48xlarge", 15e12, 6_400_000),  # Llama 3 70B, its model card
    ],
)
def test_hours_are_within_a_factor_of_two_of_known_runs(
    parameters: float, machine: str, tokens: float, gpu_hours: float
) -> None:
    run = of(advise(Question(parameters, tokens, context=4096), ("aws",)), machine)
    assert gpu_hours / 2 < run.hours * run.gpus < gpu_hours * 2


# Which GPU is usual: below 100 M parameters T4 or A10G, to 1 B A10G or A100, to 10 B A100 and usually
# several, above several A100 or H100. Newer GPUs of the same class may be cheaper by now.
@pytest.mark.parametrize(
    ("parameters", "gpus", "several"),
    [(50e6, SMALL, False), (500e6, SMALL | LARGE, False), (7e9, LARGE, True), (70e9, LARGE, True)],
)
def test_the_best_is_of_the_usual_class(parameters: float, gpus: set[str], several: bool) -> None:
    best = advise(Question(parameters, 20 * parameters)).best
    assert best and best.machine.gpu in gpus
    assert (best.gpus > 1) == several
    assert best.way == ("one GPU" if not several else best.way)


def test_an_adapter_on_4_bits_goes_on_a_small_gpu() -> None:
    best = advise(Question(7e9, 50e6, "qlora")).best
    assert best and (best.machine.gpu in SMALL, best.gpus) == (True, 1)


def test_every_gpu_model_is_answered_once() -> None:
    found = advise(Question(7e9, 1e9))
    listed = [(run.machine.cloud, run.machine.gpu) for run in (found.best, *found.others) if run]
    listed += [(row.machine.cloud, row.machine.gpu) for row in found.lost]
    assert sorted(listed) == sorted(
        {(row.cloud, row.gpu) for cloud in CLOUDS for row in OF_CLOUD[cloud].machines()}
    )
    assert all(row.why for row in found.lost)


def test_what_lost_says_by_how_much() -> None:
    found = advise(Question(70e9, 1e12, deadline_h=24, budget_usd=100), ("aws",))
    assert found.best is None and found.others == ()
    said = {row.machine.gpu: row.why for row in found.lost}
    assert "does not fit" in said["T4"]
    assert "24.0 h" in said["H100 80GB"] and "64 GPUs" in said["H100 80GB"]
    dear = advise(Question(7e9, 1e9, budget_usd=10), ("aws",))
    assert any("$10 are allowed" in row.why for row in dear.lost)


def test_a_machine_whose_rates_no_source_gives_is_not_estimated() -> None:
    said = {row.machine.gpu: row.why for row in advise(Question(7e9, 1e9)).lost}
    assert "compute rate" in said["RTX PRO 6000"]
    assert "bandwidth" in said["L4"]


@pytest.mark.parametrize(("name", "tflops", "usd"), [("g5.xlarge", 70, 1.006), ("g4dn.xlarge", 65, 0.526)])
def test_the_usual_machines_of_small_teams_are_offered(name: str, tflops: float, usd: float) -> None:
    """50 M parameters, 1 B tokens: 8 FLOPs per parameter and token, at 35 % of the peak of the data sheet."""
    run = of(advise(Question(50e6, 1e9), ("aws",), region="us-east-1"), name)
    assert (run.count, run.gpus, run.way, run.price.usd) == (1, 1, "one GPU", usd)
    assert run.hours == pytest.approx(8 * 50e6 * 1e9 / (0.35 * tflops * 1e12) / 3600)
    assert run.usd == pytest.approx(run.hours * usd)


# Largest rate of 16-bit matrix products that a benchmark in public measured on the board, in TFLOPS:
# A10G: zzc0721/torch-performance-test-data#126 (PyTorch 2.7, bf16 and fp16, 10240 x 10240).
MEASURED = {"A10G": 69.47}


@pytest.mark.parametrize("gpu", MEASURED)
def test_a_rate_is_not_less_than_a_measured_one_nor_much_more(gpu: str) -> None:
    rates = {row.tflops for row in OF_CLOUD["aws"].machines() if row.gpu == gpu}
    assert len(rates) == 1
    assert MEASURED[gpu] <= (rates.pop() or 0) < 1.1 * MEASURED[gpu]


@given(
    st.floats(1e7, 1e11), st.floats(1e6, 1e11), st.sampled_from(["full", "lora", "qlora"]), st.floats(1, 1000)
)
@settings(max_examples=25, deadline=None)
def test_a_deadline_costs_and_is_kept(parameters: float, tokens: float, method: Any, deadline: float) -> None:
    free = advise(Question(parameters, tokens, method), ("aws",))
    bound = advise(Question(parameters, tokens, method, deadline_h=deadline), ("aws",))
    fitting = [run for run in (bound.best, *bound.others) if run]
    assert all(run.hours <= deadline for run in fitting)
    assert [run.usd for run in fitting] == sorted(run.usd for run in fitting)
    if bound.best:
        assert free.best and free.best.usd <= bound.best.usd


def test_nothing_is_advised_that_google_cloud_does_not_sell_so() -> None:
    for parameters, tokens in ((7e9, 1e8), (70e9, 1e9)):
        found = advise(Question(parameters, tokens), ("gcp",))
        for run in (found.best, *found.others):
            assert run is None or facts.sold(run.machine.name, "on_demand"), run
        assert any("B200" in row.machine.gpu and "flex start" in row.why for row in found.lost)


def test_flex_start_costs_less_and_ends_after_a_week() -> None:
    short, long = (advise(Question(7e9, tokens, flex_start=True), ("gcp",)) for tokens in (1e8, 1e11))
    assert short.best and short.best.price.market == "flex_start"
    runs = [run for run in (long.best, *long.others) if run]
    assert runs and all(run.hours <= 168 or run.price.market != "flex_start" for run in runs)


def test_spot_costs_less_and_a_region_only_its_own_prices() -> None:
    asked = {"parameters": 7e9, "tokens": 1e9, "method": "lora"}
    on_demand, spot = (advise(Question(**asked, spot=spot)).best for spot in (False, True))  # type: ignore[arg-type]
    assert on_demand and spot and spot.usd < on_demand.usd and spot.price.market == "spot"
    here = advise(Question(7e9, 1e9, "lora"), region="us-west-2")
    assert {run.price.region for run in (here.best, *here.others) if run} == {"us-west-2"}


def test_what_no_run_can_have_is_refused_all_at_once() -> None:
    with pytest.raises(UserError) as refused:
        Question(0, float("nan"), "half", 0, deadline_h=-1, budget_usd=0)  # type: ignore[arg-type]  # on purpose
    assert [problem.path for problem in refused.value.problems] == [
        "--parameters", "--tokens", "--method", "--context", "--deadline", "--budget",
    ]  # fmt: skip
    with pytest.raises(UserError, match="unknown-region"):
        advise(Question(1e9, 1e9), region="mars-1")
