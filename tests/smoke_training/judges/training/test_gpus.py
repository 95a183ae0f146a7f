"""Rate, bits and driver counters of single GPUs."""

from typing import Any

import pytest

from smoke_training.evidence import UndeliveredError
from smoke_training.expected import compute as expectations
from smoke_training.expected.tables import shipped
from smoke_training.judges.training import gpus as judge
from smoke_training.model import Cause, Check, Verdict
from tests.smoke_training.samples import lines, parsed, plan

H100 = "NVIDIA H100 80GB HBM3"
PUBLISHED = 794.5  # TFLOPS, figures.toml
SIZE, PRODUCTS, BLOCKS = 8192, 20, 40
HEALTHY = {"corrected": 0, "uncorrected": 0, "remapped": 0, "remap_pending": False, "remap_failed": False,
           "action": "none", "link": [5, 16], "link_most": [5, 16]}  # fmt: skip


def at(tflops: float) -> list[float]:
    """Seconds of blocks; the first ones are those of a cold GPU."""
    warm = 2 * SIZE**3 * PRODUCTS / (tflops * 1e12)
    return [3 * warm] * (BLOCKS // 4) + [warm] * (BLOCKS - BLOCKS // 4)


def record(*rates: float, **changes: Any) -> dict[str, Any]:
    ranks = len(rates)
    return {
        "kind": "gpus", "dtype": "bfloat16", "size": SIZE, "products": PRODUCTS,
        "seconds": [at(rate) for rate in rates], "bits": [[77] * BLOCKS] * ranks,
        "uuids": [f"aa-{rank}" for rank in range(ranks)], "windows": [{"gpu_mhz": 1700.0}] * ranks,
        "states": [HEALTHY] * ranks, **changes,
    }  # fmt: skip


def judged(name: str, found: dict[str, Any], device: str = H100, per_node: int = 1, **changes: Any) -> Check:
    world = lines()[0]
    (rank, *_) = world["ranks"]
    rank |= {"backend": "nccl", "device": device}
    world["ranks"] = [
        {**rank, "rank": n, "node": n // per_node, "host": f"node-{n // per_node}"}
        for n in range(len(found["uuids"]))
    ]
    check: Check = getattr(judge, name)(plan(**changes), parsed([world, found]))
    return check


def test_gpus_at_the_rate_of_a_healthy_one_pass() -> None:
    found = judged("compute", record(681.0, 718.0))  # what one H100 held at its power limit
    assert (found.status, found.required) == (Verdict.PASS, True)
    assert "681 TFLOPS (bfloat16)" in found.message and ">= 636, published" in found.message


def test_a_gpu_that_is_slow_by_itself_is_named_with_what_holds_its_clock_down() -> None:
    windows = [{}, {"gpu_mhz": 900.0, "clock_reasons": ["hw_thermal_slowdown", "sw_power_cap"]}, {}]
    found = judged("compute", record(700.0, 400.0, 700.0, windows=windows))
    assert found.status is Verdict.FAIL
    ((culprit),) = found.culprits
    assert (culprit.kind, culprit.id, culprit.cause, culprit.node) == ("rank", "1", Cause.CLOCK, "node-1")
    assert "by hw_thermal_slowdown" in culprit.evidence[0]
    assert "node-1" in str(found.next_action)


def test_gpus_that_are_all_slow_alike_fail_and_accuse_the_stack() -> None:
    found = judged("compute", record(500.0, 500.0))
    assert found.status is Verdict.FAIL
    assert [(item.kind, item.cause) for item in found.culprits] == [("stack", Cause.SLOW_COMPUTE)]
    assert "2 of 2" in found.message


def test_between_a_healthy_rate_and_a_fault_nothing_is_decided() -> None:
    found = judged("compute", record(700.0, 0.75 * PUBLISHED))
    assert (found.status, found.required, found.culprits) == (Verdict.INCONCLUSIVE, True, ())
    now_and_then = at(700.0)
    now_and_then[BLOCKS // 2 :: 2] = at(300.0)[BLOCKS // 2 :: 2]
    row = record(700.0, 700.0)
    row["seconds"] = [at(700.0), now_and_then]
    assert judged("compute", row).status is Verdict.INCONCLUSIVE


def test_an_unmeasured_gpu_is_reported_and_never_a_silent_pass() -> None:
    found = judged("compute", record(60.0, 60.0), device="NVIDIA L4")
    assert (found.status, found.required) == (Verdict.INCONCLUSIVE, False)
    assert "NVIDIA L4; no_peak" in found.message
    peak = {"value": 121.0, "dtype": "bf16", "source": "data sheet"}
    found = judged("compute", record(90.0, 90.0), device="NVIDIA L4", peak_tflops=peak)
    assert (found.status, found.required) == (Verdict.PASS, False)
    assert "NVIDIA L4" in found.message
    found = judged("compute", record(50.0, 50.0), device="NVIDIA L4", peak_tflops=peak)
    assert (found.status, found.required) == (Verdict.INCONCLUSIVE, False)


@pytest.mark.parametrize(
    ("device", "healthy"),
    [(H100, 700.0), ("NVIDIA H200", 700.0), ("NVIDIA GB200", 1560.0), ("NVIDIA L4", 60.0)],
)
def test_a_gpu_that_is_slower_than_its_peers_is_named_whatever_was_published(
    device: str, healthy: float
) -> None:
    found = judged("compute", record(*[healthy] * 5, 0.84 * healthy, *[healthy] * 2), device, per_node=8)
    assert (found.status, found.required) == (Verdict.FAIL, True)
    ((culprit),) = found.culprits
    assert (culprit.id, culprit.cause, culprit.node) == ("5", Cause.SLOW_COMPUTE, "node-0")
    assert "0.84 of the median of its peers" in culprit.evidence[0]


def test_the_spread_of_healthy_gpus_accuses_none_and_two_are_no_peers() -> None:
    spread = [681.0, 690.0, 700.0, 706.0, 710.0, 712.0, 715.0, 718.0] * 9  # 72 GPUs in one node
    assert judged("compute", record(*spread), per_node=72).status is Verdict.PASS
    assert judged("compute", record(718.0, 640.0, 718.0)).status is Verdict.PASS
    doubt = judged("compute", record(700.0, 690.0, 700.0, 640.0))
    assert (doubt.status, doubt.required, doubt.culprits) == (Verdict.INCONCLUSIVE, True, ())
    assert "rank 3" in doubt.message
    mixed = judged("compute", record(700.0, 690.0, 700.0, 590.0))
    assert (mixed.status, [item.id for item in mixed.culprits]) == (Verdict.FAIL, ["3"])
    assert mixed.measured is not None
    assert mixed.measured.ci is not None  # a later run is compared with it


def test_a_slice_of_a_gpu_is_not_held_against_the_whole() -> None:
    found = judged("compute", record(*[90.0] * 7), device=f"{H100} MIG 1g.10gb")
    assert (found.status, found.required) == (Verdict.SKIPPED, False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"link": [5, 8]}, "8 lanes of PCI Express, its peers have 16"), ({"nvlinks": 17}, "17 active NVLinks")],
)
def test_a_gpu_with_fewer_lanes_than_its_peers_on_the_node_is_named(
    changes: dict[str, Any], words: str
) -> None:
    usual = {**HEALTHY, "nvlinks": 18}
    found = judged("state", record(*[700.0] * 4, states=[usual] * 3 + [{**usual, **changes}]), per_node=4)
    assert (found.status, [item.id for item in found.culprits]) == (Verdict.FAIL, ["3"])
    assert words in found.message
    alike = judged("state", record(*[700.0] * 4, states=[{**usual, **changes}] * 4), per_node=4)
    assert alike.status is Verdict.PASS  # a virtual machine may show less than there is


def test_ranks_that_share_a_gpu_have_no_rate_of_their_own() -> None:
    found = judged("compute", record(300.0, 300.0, uuids=["aa", "aa"]))
    assert (found.status, found.required) == (Verdict.SKIPPED, False)


def test_no_published_rate_lies_below_the_share_of_a_peak_that_is_expected_of_others() -> None:
    peaks = {"A100-SXM4": 312.0, "H100 80GB HBM3": 989.0, "B200": 2250.0}  # dense bfloat16, data sheets
    rates = {row.name: row.tflops for row in shipped().accelerators}
    assert all(rates[name] / peak >= expectations.OF_PEAK for name, peak in peaks.items())


def test_one_result_with_other_bits_names_its_gpu() -> None:
    rows = [[77] * BLOCKS, [77] * (BLOCKS - 1) + [78]]
    found = judged("bits", record(700.0, 700.0, bits=rows))
    assert found.status is Verdict.FAIL
    ((culprit),) = found.culprits
    assert (culprit.id, culprit.cause, culprit.node) == ("1", Cause.CORRUPTION, "node-1")
    assert f"1 of {BLOCKS} results" in found.message
    assert judged("bits", record(700.0, 700.0)).status is Verdict.PASS


@pytest.mark.parametrize(
    ("rows", "accused"),
    [
        ([[1, 1, 1], [1, 1, 1], [2, 2, 2]], ["2"]),  # always wrong, unlike the others
        ([[1, 1, 2]], ["0"]),  # alone, and wrong now and then
        ([[1] * 40, [2] * 38], None),  # two camps
        ([[1, 2, 3], [4, 5, 6]], None),  # nothing repeats itself
    ],
)
def test_no_gpu_is_accused_without_a_result_of_most_gpus(
    rows: list[list[int]], accused: list[str] | None
) -> None:
    found = judged("bits", record(*[700.0] * len(rows), bits=rows))
    assert [item.id for item in found.culprits] == (accused or [])
    assert found.status is (Verdict.FAIL if accused else Verdict.INCONCLUSIVE)
    assert found.required


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({}, Verdict.PASS, "2 GPUs"),
        ({"remap_failed": True}, Verdict.FAIL, "rank 1 on node node-1: a failing row of its memory"),
        ({"action": "drain peers and reset"}, Verdict.FAIL, "drain peers and reset"),
        ({"uncorrected": 2, "remap_pending": True}, Verdict.PASS, "2 uncorrectable memory errors since its"),
        ({"uncorrected": 2, "action": None}, Verdict.INCONCLUSIVE, "2 uncorrectable memory errors"),
        ({"corrected": 900, "action": None}, Verdict.PASS, "2 GPUs"),
    ],
)
def test_the_action_a_driver_requests_decides_and_contained_errors_are_reported(
    changes: dict[str, Any], status: Verdict, words: str
) -> None:
    found = judged("state", record(700.0, 700.0, states=[HEALTHY, {**HEALTHY, **changes}]))
    assert (found.status, found.required) == (status, True)
    assert words in found.message
    assert [item.id for item in found.culprits] == (["1"] if status is Verdict.FAIL else [])
    assert found.measured is not None
    assert found.measured.detail["links"]["1"].startswith("generation 5 x16")  # type: ignore[index]


def test_without_the_drivers_library_nothing_is_said_to_be_healthy() -> None:
    found = judged("state", record(700.0, 700.0, states=[None, None]))
    assert (found.status, found.required) == (Verdict.SKIPPED, False)


@pytest.mark.parametrize("name", ["compute", "bits", "state"])
def test_cpus_are_not_judged_and_gpus_that_delivered_nothing_do_not_pass(name: str) -> None:
    found = getattr(judge, name)(plan(), parsed(lines()))
    assert (found.status, found.required) == (Verdict.SKIPPED, False)
    cluster = lines()[0]
    for rank in cluster["ranks"]:
        rank["backend"] = "nccl"
    with pytest.raises(UndeliveredError):
        getattr(judge, name)(plan(), parsed([cluster]))
