from typing import Any

import pytest

from smoke_training.judges.state import checkpoint
from smoke_training.judges.state import resume as state
from smoke_training.model import Cause, Check, Verdict
from tests.smoke_training.samples import checkpoints, lines, parsed, plan


def judged(judge: Any, kind: str, also: list[dict[str, Any]] | None = None, **changes: Any) -> Check:
    found = [{**item, **changes} if item["kind"] == kind else item for item in [*lines(), *(also or [])]]
    check = judge(plan(), parsed(found))
    assert isinstance(check, Check)
    return check


def test_a_commit_is_reported_with_its_stall_rate_and_restore() -> None:
    check = judged(checkpoint.commit, "checkpoint")
    assert check.status is Verdict.PASS
    assert check.measured is not None
    assert check.measured.value == 0.1
    assert check.measured.detail["mb_s"] == pytest.approx(167.8, rel=1e-3)
    assert check.measured.detail["stall_s"] == 0.02
    assert check.measured.detail["restore_cache"] == "cold"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"different": ["rank 1: layer-0"]}, Verdict.FAIL),
        ({"left_behind": ["/c/.metadata.tmp"]}, Verdict.FAIL),
        ({"entries": 0}, Verdict.ERROR),
    ],
)
def test_a_checkpoint_that_does_not_come_back_is_no_pass(changes: dict[str, Any], status: Verdict) -> None:
    assert judged(checkpoint.commit, "checkpoint", **changes).status is status


def damage(rank: int, step: int, fault: str) -> dict[str, Any]:
    path = f"/mnt/checkpoints/step-{step}/rank-{rank}"
    return {"rank": rank, "node": rank, "step": step, "path": path, "fault": fault}


def test_a_damaged_committed_checkpoint_fails_with_shard_and_fallback_named() -> None:
    found = [damage(1, 8, "state.pt has 10 bytes that are not those of its manifest")]
    check = judged(checkpoint.integrity, "integrity", damaged=found, resumed_from=4)
    assert check.status is Verdict.FAIL
    (culprit,) = check.culprits
    assert (culprit.kind, culprit.id, culprit.cause) == ("storage", "checkpoints@1", Cause.TORN_CHECKPOINT)
    assert culprit.node == "smoke-ab-1"
    assert "step 8, /mnt/checkpoints/step-8/rank-1" in culprit.evidence[0]
    assert "committed step 8" in check.message
    assert "from step 4" in check.message


def test_an_unreadable_checkpoint_is_an_error_that_names_it() -> None:
    found = [damage(0, 8, "/mnt/checkpoints/step-8/rank-0/manifest.json: Permission denied")]
    check = judged(checkpoint.integrity, "integrity", unreadable=found, resumed_from=None)
    assert check.status is Verdict.ERROR
    assert "Permission denied" in check.message
    assert "/mnt/checkpoints/step-8/rank-0" in (check.next_action or "")


def test_nothing_to_resume_from_is_an_error_even_without_a_reason() -> None:
    check = judged(checkpoint.integrity, "integrity", resumed_from=None, committed=None)
    assert check.status is Verdict.ERROR
    assert "/mnt/checkpoints" in check.message


@pytest.mark.parametrize(
    ("phase", "judge"), [("resume", checkpoint.integrity), ("checkpoint", checkpoint.commit)]
)
def test_a_full_disk_during_a_checkpoint_fails_with_bytes_and_the_state_of_the_one_before(
    phase: str, judge: Any
) -> None:
    refusal = {
        "kind": "storage_error", "phase": phase, "name": "checkpoints", "path": "/mnt/checkpoints/step-8",
        "rank": 1, "node": 1, "operation": "write", "errno": "ENOSPC", "message": "No space left on device",
        "bytes_wanted": 500, "bytes_free": 20, "left_behind": [], "previous_complete": True,
    }  # fmt: skip
    check = judged(judge, "", also=[refusal])
    assert (check.status, check.culprits[0].cause) == (Verdict.FAIL, Cause.DISK_FULL)
    assert "500 bytes wanted" in check.message
    assert "still complete" in check.message


def test_fallback_from_a_damaged_checkpoint_is_not_counted_as_lost_steps() -> None:
    check = judged(state.recovery, "resume", killed_at_step=14, resumed_from=8, committed=12)
    assert check.status is Verdict.PASS
    assert check.measured is not None
    assert (check.measured.detail["lost_steps"], check.measured.detail["repeated_steps"]) == (2, 6)
    assert judged(state.recovery, "resume", killed_at_step=14, resumed_from=8).status is Verdict.FAIL


def test_torn_copies_of_both_kinds_of_checkpoints_count() -> None:
    check = judged(checkpoint.torn_refused, "checkpoint")
    assert check.measured is not None
    assert check.measured.n == 3
    accepted = judged(checkpoint.torn_refused, "checkpoint", torn_accepted=["0: no mark"])
    assert accepted.status is Verdict.FAIL
    assert "0: no mark" in accepted.message


def test_advice_names_the_interval_its_price_and_its_sources() -> None:
    check = judged(checkpoint.advice, "checkpoint")
    assert check.status is Verdict.SKIPPED
    assert check.measured is not None
    detail = check.measured.detail
    assert detail["gpus"] == 16
    assert detail["mtbf_s"] == pytest.approx(50_700 / 16 * 3600, rel=1e-3)
    assert detail["commit_s"] == pytest.approx(105e9 / (16 << 20) * 0.1)
    assert check.measured.value == pytest.approx(detail["daly_s"], rel=1e-6)
    assert "arXiv 2407.21783" in str(detail["mtbf_source"])


def test_advice_without_gpus_is_unknown_not_zero() -> None:
    check = checkpoint.advice(plan(gpus_per_node=0), parsed(checkpoints()))
    assert check is not None
    assert check.measured is not None
    assert check.measured.value is None
    assert "per GPU" in (check.measured.reason or "")
