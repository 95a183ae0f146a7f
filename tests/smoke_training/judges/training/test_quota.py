"""CPU quotas that hold ranks back, also all of them alike."""

from typing import Any

import pytest

from smoke_training.judges.training import quota, step
from smoke_training.model import Cause, Check, Verdict
from tests.smoke_training.samples import lines, parsed, plan, spins


def held(*shares: float | None) -> Check:
    """Two ranks of which a quota took these shares of their time; None where the kernel does not say."""
    items = lines()
    training = next(line for line in items if line["kind"] == "training")
    windows = []
    for rank, share in enumerate(shares):
        own = [0.02] * 80
        training["compute"][rank] = [value / (1 - (share or 0.0)) for value in own]
        training["compute_cpu"][rank] = own
        lost = sum(training["compute"][rank]) - sum(own)
        periods = None if share is None else round(400 * share)
        # A group of several busy processors counts their seconds side by side.
        seconds = None if share is None else 2 * lost
        windows.append({**spins()["windows"][0], "throttled_periods": periods, "throttled_seconds": seconds})
    training["windows"] = windows
    return judged(items)


def judged(items: list[dict[str, Any]]) -> Check:
    return quota.quota(plan(), parsed(items))


def test_a_cluster_that_is_throttled_alike_fails_although_no_rank_is_slower_than_its_peers() -> None:
    found = held(0.4, 0.4)
    assert found.status is Verdict.FAIL
    ((kind, name, cause),) = [(item.kind, item.id, item.cause) for item in found.culprits]
    assert (kind, name, cause) == ("stack", "cpu quota", Cause.QUOTA)
    assert "1.67x longer" in found.message
    assert "160 periods" in found.culprits[0].evidence[0]
    assert "CPU limit" in str(found.next_action)


def test_one_throttled_rank_is_accused_as_the_straggler_that_it_is() -> None:
    found = held(0.0, 0.4)
    assert [(item.kind, item.id, item.cause) for item in found.culprits] == [("rank", "1", Cause.QUOTA)]
    assert found.culprits[0].node == "smoke-ab-1"


@pytest.mark.parametrize(
    ("share", "status"), [(0.0, Verdict.PASS), (0.04, Verdict.PASS), (0.1, Verdict.INCONCLUSIVE)]
)
def test_what_a_quota_costs_decides_how_it_is_judged(share: float, status: Verdict) -> None:
    assert held(share, share).status is status


def test_time_that_the_rank_did_run_is_no_time_that_its_quota_took() -> None:
    items = lines()
    training = next(line for line in items if line["kind"] == "training")
    training["compute_cpu"] = training["compute"]
    busy = {**spins()["windows"][0], "throttled_periods": 90, "throttled_seconds": 5.0}
    training["windows"] = [busy, busy]
    found = judged(items)
    assert (found.status, found.measured and found.measured.value) == (Verdict.PASS, 1.0)


def test_without_the_kernels_counter_nothing_is_judged() -> None:
    found = held(None, None)
    assert (found.status, found.required) == (Verdict.SKIPPED, False)


def test_the_straggler_rule_alone_does_not_see_it() -> None:
    items = lines()
    training = next(line for line in items if line["kind"] == "training")
    for rank in (0, 1):
        training["compute"][rank] = [value / 0.6 for value in training["compute"][rank]]
    training["step"] = [[value / 0.6 for value in row] for row in training["step"]]
    assert step.straggler(plan(), parsed(items)).status is Verdict.PASS
