"""GPU clocks that heat or power holds down, also all of them alike."""

from typing import Any

from smoke_training.judges.training import clocks as judge
from smoke_training.model import Check, Verdict
from tests.smoke_training.samples import lines, parsed, plan, spins


def judged(*windows: dict[str, Any]) -> Check:
    items = lines()
    training = next(line for line in items if line["kind"] == "training")
    training["windows"] = [{**spins()["windows"][0], **window} for window in windows]
    return judge.clocks(plan(), parsed(items))


def test_gpus_that_are_throttled_alike_are_no_silent_pass() -> None:
    hot = {"gpu_mhz": 990.0, "clock_reasons": ["hw_thermal_slowdown", "sw_power_cap"]}
    found = judged(hot, hot)
    assert (found.status, found.required) == (Verdict.INCONCLUSIVE, True)
    assert "smoke-ab-1: hw_thermal_slowdown" in found.message
    assert "sw_power_cap" not in found.message
    assert "PERFORMANCE" in str(found.next_action)


def test_a_power_cap_is_where_healthy_gpus_run() -> None:
    found = judged({"gpu_mhz": 1700.0, "clock_reasons": ["sw_power_cap"]}, {"gpu_mhz": 1980.0})
    assert found.status is Verdict.PASS and "1700 MHz (rank 0)" in found.message


def test_without_gpus_there_is_no_clock_to_judge() -> None:
    found = judged({}, {})
    assert (found.status, found.required) == (Verdict.SKIPPED, False)
