import re
from collections.abc import Mapping
from typing import Any

import pytest

from smoke_training.judges.training import decomposition as judge
from smoke_training.model import Check, Measured, Verdict
from tests.smoke_training.samples import decomposition, lines, parsed, plan

PEAK = {"value": 100.0, "dtype": "bf16", "source": "a data sheet"}


def judged(name: str, changes: Mapping[str, Any], **plan_changes: Any) -> Check:
    items = [line for line in lines() if line["kind"] == "world"] + [{**decomposition(), **changes}]
    found = getattr(judge, name)(plan(**plan_changes), parsed(items))
    assert isinstance(found, Check)
    return found


def measured(name: str, changes: Mapping[str, Any], **plan_changes: Any) -> Measured:
    found = judged(name, changes, **plan_changes).measured
    assert found is not None
    return found


def test_parts_that_sum_to_the_step_are_a_record() -> None:
    found = judged("decomposition", {})
    assert found.status is Verdict.PASS
    assert re.findall(r"[\d.]+ ms|\d+%", found.message) == ["40.0 ms", "5%", "75%", "12%", "2%", "5%"]
    assert found.measured is not None
    assert found.measured.detail["lost_to_data"] == pytest.approx(0.05)


@pytest.mark.parametrize("part", ["data", "compute", "exposed"])
@pytest.mark.parametrize("factor", [0.0, 2.0])
def test_a_part_left_out_or_counted_twice_makes_no_record(part: str, factor: float) -> None:
    rows = [decomposition()[part][0], [value * factor for value in decomposition()[part][1]]]
    found = judged("decomposition", {part: rows})
    assert found.status is Verdict.ERROR
    assert "rank 1" in found.message


@pytest.mark.parametrize(("share", "status"), [(0.019, Verdict.PASS), (0.021, Verdict.ERROR)])
def test_two_percent_are_tolerated(share: float, status: Verdict) -> None:
    assert judged("decomposition", {"total": [[0.04 / (1 - share)] * 20] * 2}).status is status


def test_a_cut_record_is_an_error_not_a_pass() -> None:
    with pytest.raises((ValueError, IndexError, ZeroDivisionError)):
        judged("decomposition", {"total": [], "data": []})


def test_overlap_is_what_the_backward_pass_hides() -> None:
    found = measured("overlap", {})
    assert found.value == pytest.approx(0.5)
    said = "a step waits 5.00 ms for gradients, whose exchange alone takes 10.00 ms: overlap 50%"
    assert judged("overlap", {}).message == said
    assert found.detail["clamped"] is False


def test_waiting_for_a_slower_rank_is_not_communication() -> None:
    found = measured("overlap", {"exposed": [[0.025] * 20, [0.002] * 20]})
    assert found.value == pytest.approx(0.8)
    assert found.detail["waiting_for_slower_ranks_s"] == pytest.approx(0.023)


def test_overlap_outside_its_range_is_clamped_and_says_so() -> None:
    found = measured("overlap", {"exposed": [[0.03] * 20] * 2})
    assert "30.00 ms" in judged("overlap", {"exposed": [[0.03] * 20] * 2}).message
    assert found.value == 0.0
    assert found.detail["clamped"] is True
    assert found.detail["raw"] == pytest.approx(-2.0)


def test_no_utilisation_without_a_peak() -> None:
    found = measured("mfu", {})
    assert found.value is None
    assert (found.reason or "").startswith("no_peak")


def test_utilisation_against_the_declared_and_the_achievable_peak() -> None:
    changes = {"dtype": "bfloat16", "device": "NVIDIA H100 80GB HBM3", "flops_per_token": 1e10}
    found = measured("mfu", changes, peak_tflops=PEAK)
    rate = 64 / 0.04
    assert found.value == pytest.approx(1e10 * rate / (2 * 100e12))
    assert found.detail["achievable"] == pytest.approx(1e10 * rate / (2 * 794.5e12))
    assert "stas00" in str(found.detail["achievable_source"])


@pytest.mark.parametrize("dtype", ["float32", "float8_e4m3fn"])
def test_a_peak_of_another_data_type_gives_no_utilisation(dtype: str) -> None:
    assert measured("mfu", {"dtype": dtype}, peak_tflops=PEAK).value is None


def test_an_unpublished_accelerator_has_no_achievable_peak() -> None:
    found = measured("mfu", {"dtype": "bfloat16", "device": "NVIDIA X1"}, peak_tflops=PEAK)
    assert found.value is not None
    assert found.detail["achievable"] is None
    assert "NVIDIA X1" in str(found.detail["achievable_reason"])
