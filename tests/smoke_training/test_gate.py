"""Verdicts that open a gate, and preempted runs."""

from typing import Any

import pytest

from smoke_training import plan as plans
from smoke_training import verdict
from smoke_training.model import EXIT_CODES, Verdict
from smoke_training.reader import DocumentError
from tests.smoke_training.samples import lines, parsed, plan

STOPPED = {"kind": "ended", "reason": "stopped by SIGTERM"}


@pytest.mark.parametrize("found", list(Verdict))
def test_only_a_pass_opens_unless_the_plan_says_otherwise(found: Verdict) -> None:
    assert plan().exit_code(found) == EXIT_CODES[found]
    assert plan().opens(found) is (found is Verdict.PASS)


def test_what_the_plan_accepts_leaves_as_zero_and_the_rest_as_itself() -> None:
    lenient = plan(accept=["PASS", "INCONCLUSIVE", "SKIPPED"])
    codes = {found: lenient.exit_code(found) for found in Verdict}
    assert codes == {
        Verdict.PASS: 0,
        Verdict.FAIL: 1,
        Verdict.INCONCLUSIVE: 0,
        Verdict.ERROR: 3,
        Verdict.SKIPPED: 0,
    }


def cut(count: int, *more: dict[str, Any]) -> list[dict[str, Any]]:
    return [*lines()[:count], *more]


@pytest.mark.parametrize("count", range(7))
def test_a_preemptible_run_that_is_stopped_is_skipped_wherever_it_was(count: int) -> None:
    broken = {"kind": "failure", "rank": 1, "phase": "training", "message": "connection closed by peer"}
    found = verdict.judge(plan(preemptible=True), parsed(cut(count, broken, STOPPED)))
    assert found.verdict is Verdict.SKIPPED
    decisive = found.decisive
    assert decisive is not None and "preempted" in decisive.message and decisive.culprits == ()
    assert verdict.judge(plan(), parsed(cut(count, broken, STOPPED))).verdict is Verdict.ERROR


def test_a_fault_that_was_measured_before_stays_a_fault() -> None:
    slow = lines(slowdown=2.0)[:3]
    assert verdict.judge(plan(preemptible=True), parsed([*slow, STOPPED])).verdict is Verdict.FAIL


def test_only_a_signal_excuses_a_run_and_only_before_its_end() -> None:
    late = {"kind": "ended", "reason": "the deadline passed"}
    assert verdict.judge(plan(preemptible=True), parsed(cut(3, late))).verdict is Verdict.ERROR
    torn = [line for line in lines() if line["kind"] != "parity"]
    assert verdict.judge(plan(preemptible=True), parsed([*torn, STOPPED])).verdict is Verdict.ERROR


def test_a_folder_that_only_the_job_knows_is_filled_in_by_the_job() -> None:
    target = {"name": "checkpoints", "path": "$WORK_DIR/data", "write_mb_s": None, "source": None}
    asked = plan(storage=[target, {"name": "local", "path": "/scratch"}])
    found = plans.located(asked, {"WORK_DIR": "/checkpoints/smoke/smoke-1"})
    assert [item.path for item in found.storage] == ["/checkpoints/smoke/smoke-1/data", "/scratch"]
    with pytest.raises(DocumentError, match=r"storage\[0\].path: .*\$WORK_DIR"):
        plans.located(asked, {})
