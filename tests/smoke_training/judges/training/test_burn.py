"""Sustained work: wrong bits, slow products and copies, on made-up evidence."""

from typing import Any

import pytest

from smoke_training.judges.training import burn as judge
from smoke_training.model import Cause, Check, Verdict
from tests.smoke_training.samples import lines, parsed, plan

H100 = "NVIDIA H100 80GB HBM3"
STEPS = 300_000


def record(ranks: int = 8, **changes: Any) -> dict[str, Any]:
    """Fifteen minutes of one node of healthy H100s."""
    return {
        "kind": "burn", "planned_s": 900.0, "seconds": 900.4, "dtype": "bfloat16", "size": 8192,
        "steps": [STEPS] * ranks, "wrong": [0] * ranks, "first": [[1, 2, 3, 4]] * ranks,
        "rates": [[700.0] * 60] * ranks, "watts": [[690.0, 700.0]] * ranks, "windows": [{}] * ranks,
        "copies": {"memory": [2700.0] * ranks, "to_device": [55.4] * ranks, "to_host": [55.1] * ranks,
                   "to_peer": [372.0] * ranks},
        "nodes": [0], "files": {"scratch.reads": [90000.0]}, **changes,
    }  # fmt: skip


def judged(name: str, found: dict[str, Any], device: str = H100, backend: str = "nccl") -> Check:
    world = lines()[0]
    first = {**world["ranks"][0], "device": device, "backend": backend}
    world["ranks"] = [{**first, "rank": n, "node": 0, "host": "node-0"} for n in range(len(found["steps"]))]
    check: Check = getattr(judge, name)(plan(), parsed([world, found]))
    return check


def test_a_healthy_burn_passes_and_states_what_it_would_have_found() -> None:
    found = judged("bits", record())
    assert (found.status, found.required) == (Verdict.PASS, True)
    assert found.measured is not None
    assert found.measured.detail["found_with_probability"] == pytest.approx(1.0)
    assert judged("rates", record()).status is Verdict.PASS


@pytest.mark.parametrize(("copy", "rate"), [("to_device", 27.8), ("to_host", 27.6)])
def test_a_link_one_generation_lower_than_those_of_its_peers_is_named(copy: str, rate: float) -> None:
    copies = record()["copies"]
    found = judged("rates", record(copies={**copies, copy: [*copies[copy][:7], rate]}))
    assert (found.status, [item.id for item in found.culprits]) == (Verdict.FAIL, ["7"])


def test_the_probability_is_that_of_one_fault_in_150_steps() -> None:
    few = judged("bits", record(steps=[STEPS] * 7 + [690]))
    assert few.measured is not None
    assert few.measured.detail["found_with_probability"] == pytest.approx(1 - (149 / 150) ** 690)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"wrong": [0, 0, 0, 2, 0, 0, 0, 0]}, f"2 of {STEPS} repeated steps"),
        ({"first": [[1, 2, 3, 4]] * 3 + [[1, 2, 3, 9]] + [[1, 2, 3, 4]] * 4}, "those of most ranks"),
    ],
)
def test_wrong_bits_name_the_rank(changes: dict[str, Any], words: str) -> None:
    found = judged("bits", record(**changes))
    assert (found.status, [item.id for item in found.culprits]) == (Verdict.FAIL, ["3"])
    assert (found.culprits[0].cause, found.culprits[0].node) == (Cause.CORRUPTION, "node-0")
    assert words in found.message


def test_an_interrupted_burn_and_two_camps_prove_nothing() -> None:
    assert judged("bits", record(seconds=310.0)).status is Verdict.INCONCLUSIVE
    camps = record(2, first=[[1, 2, 3, 4], [5, 6, 7, 8]])
    assert judged("bits", camps).status is Verdict.INCONCLUSIVE
    # CPUs of several generations differ in the last bits of a product; repeated steps do not.
    first = [[1, 2, 3, 4]] * 7 + [[1, 2, 3, 9]]
    assert judged("bits", record(first=first), "cpu", "gloo").status is Verdict.INCONCLUSIVE
    broken = record(first=first, wrong=[1] + [0] * 7)
    found = judged("bits", broken, "cpu", "gloo")
    assert (found.status, [item.id for item in found.culprits]) == (Verdict.FAIL, ["0"])
    wrong = record(seconds=310.0, wrong=[1] + [0] * 7)
    assert judged("bits", wrong).status is Verdict.FAIL


def odd(healthy: float, one: float) -> list[float]:
    return [healthy] * 6 + [one, healthy]


@pytest.mark.parametrize(
    "changes",
    [
        {"rates": [[rate] * 60 for rate in odd(700.0, 590.0)]},
        {"rates": [[700.0] * 60] * 6 + [[700.0] * 20 + [590.0] * 40] + [[700.0] * 60]},  # in heat
        {"copies": {"memory": odd(2700.0, 2300.0)}},
        {"copies": {"to_host": odd(55.1, 13.0)}},
        {"copies": {"to_peer": odd(372.0, 25.0)}},
    ],
)  # fmt: skip
def test_a_gpu_that_is_slow_in_one_thing_is_named(changes: dict[str, Any]) -> None:
    found = judged("rates", record(**changes))
    assert (found.status, [item.id for item in found.culprits]) == (Verdict.FAIL, ["6"]), found.message


def test_all_alike_are_held_against_what_was_published() -> None:
    slow = record(copies={"memory": [1500.0] * 8})
    assert len(judged("rates", slow).culprits) == 8
    nothing = judged("rates", slow, device="NVIDIA L4")
    assert (nothing.status, nothing.required) == (Verdict.INCONCLUSIVE, False)
    assert judged("rates", record(rates=[[400.0] * 60] * 8)).status is Verdict.FAIL


@pytest.mark.parametrize(
    ("device", "tflops", "status", "required"),
    [
        (H100, 640.0, Verdict.PASS, True),
        (H100, 560.0, Verdict.INCONCLUSIVE, True),  # a cap of power on all of them
        ("NVIDIA A100 80GB PCIe", 100.0, Verdict.FAIL, True),
        ("NVIDIA A100-PCIE-40GB", 210.0, Verdict.PASS, True),
        ("NVIDIA L40S", 100.0, Verdict.INCONCLUSIVE, False),
    ],
)
def test_only_a_reference_makes_equal_gpus_pass(
    device: str, tflops: float, status: Verdict, required: bool
) -> None:
    found = judged("rates", record(rates=[[tflops] * 60] * 8, copies={}), device)
    assert (found.status, found.required) == (status, required)
    assert (found.next_action is None) == (status is Verdict.PASS)


@pytest.mark.parametrize(
    ("rate", "reasons", "status"),
    [
        (640.0, [], Verdict.INCONCLUSIVE),  # 0.914: healthy GPUs differ by as much
        (640.0, ["hw_thermal_slowdown"], Verdict.FAIL),
        (640.0, ["sw_power_cap"], Verdict.INCONCLUSIVE),
        (590.0, [], Verdict.FAIL),
    ],
)
def test_a_little_below_its_peers_is_a_doubt_unless_its_clock_is_at_fault(
    rate: float, reasons: list[str], status: Verdict
) -> None:
    windows: list[dict[str, Any]] = [{}] * 7 + [{"clock_reasons": reasons}]
    found = judged("rates", record(rates=[[700.0] * 60] * 7 + [[rate] * 60], windows=windows))
    assert (found.status, len(found.culprits)) == (status, int(status is Verdict.FAIL))
    assert "rank 7" in found.message


def test_cpus_and_slices_are_reported() -> None:
    for device, backend in (("cpu", "gloo"), (f"{H100} MIG 1g.10gb", "nccl")):
        found = judged("rates", record(copies={"to_peer": [None] * 8}), device, backend)
        assert (found.status, found.required) == (Verdict.SKIPPED, False)
    assert judged("bits", record(), "cpu", "gloo").status is Verdict.PASS
