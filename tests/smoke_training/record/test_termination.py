"""The words of a result: what a failed deploy shows."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training.model import Cause, Check, Culprit, Expected, Judgement, Measured, Verdict
from smoke_training.record import termination

SLOW = Check(
    id="training.straggler",
    status=Verdict.FAIL,
    required=True,
    message="rank 1 computes 1.96x slower than its peers (tolerated: 1.15x)",
    measured=Measured(value=1.96, unit="x", n=80, estimator="trimmed mean of block medians", ci=(1.91, 2.02)),
    expected=Expected(value=1.0, kind="declared", source="the run plan", floor=1.15),
    zone=(1.05, 1.15),
    noise={"steal": 0.0012, "psi": None},
    culprits=(
        Culprit(
            kind="rank", id="1", node="smoke-ab-1", score=1.96, ci=(1.91, 2.02), cause=Cause.NOT_RUNNING,
            evidence=("its CPU time is as its peers'", "stopped for 48 % of the time"),
        ),
    ),
    next_action="Drain node smoke-ab-1 and validate again.",
)  # fmt: skip
GOOD = Check(id="collective.payload", status=Verdict.PASS, required=True, message="0 of 1000 sums are wrong")


def judgement(*checks: Check, verdict: Verdict = Verdict.FAIL) -> Judgement:
    return Judgement(verdict=verdict, checks=checks, notes=("Ran on CPU.",))


def test_a_failure_shows_figure_interval_limit_zone_culprit_cause_and_one_action() -> None:
    result = termination.termination_message(judgement(GOOD, SLOW), accept=("PASS",)).splitlines()
    assert result[0].startswith("FAIL straggler ")
    assert "node smoke-ab-1" in result[0]
    measured, expected = (
        next(line for line in result if word in line) for word in ("measured:", "expected:")
    )
    assert "1.96 x" in measured and "1.91 .. 2.02" in measured and "n = 80" in measured
    assert "limit 1.15" in expected and "1.05 .. 1.15" in expected and "declared" in expected
    assert "  noise: steal 0.0012" in result
    assert any(
        line.startswith("  suspect: rank 1") and line.endswith("cause: not_running") for line in result
    )
    assert "    - stopped for 48 % of the time" in result
    assert any(line.startswith("Gate: closed") for line in result)
    assert [line for line in result if line.startswith("Next: ")] == [f"Next: {SLOW.next_action}"]
    assert not any("collective.payload" in line for line in result), "what passed is not in the way"


def test_what_is_accused_is_named_whatever_it_is() -> None:
    link = replace(SLOW.culprits[0], kind="link", id="0-2", node=None, score=0.5, cause=Cause.HALF_RATE_LINK)
    result = termination.termination_message(judgement(replace(SLOW, culprits=(link,))))
    assert all(fact in result for fact in ("link 0-2: half_rate_link", "score 0.5", "1.91 .. 2.02"))


def test_a_verdict_that_is_accepted_closes_no_gate() -> None:
    unsure = replace(SLOW, status=Verdict.INCONCLUSIVE)
    found = judgement(unsure, verdict=Verdict.INCONCLUSIVE)
    assert "Gate: closed" not in termination.termination_message(found, accept=("PASS", "INCONCLUSIVE"))
    assert "Gate: closed" in termination.termination_message(found, accept=("PASS",))


def test_a_pass_states_its_zones() -> None:
    passed = replace(SLOW, status=Verdict.PASS, culprits=(), message="no rank is slow")
    result = termination.termination_message(judgement(passed, GOOD, verdict=Verdict.PASS), accept=("PASS",))
    assert result.startswith("PASS ")
    assert "PASS training.straggler: " in result and "1.05 .. 1.15" in result
    assert "PASS collective.payload: " in result and "Gate" not in result


def test_a_run_that_made_way_says_so() -> None:
    skipped = Check(
        id="run.completed", status=Verdict.SKIPPED, required=True, message="Not judged: preempted"
    )
    result = termination.termination_message(judgement(skipped, verdict=Verdict.SKIPPED))
    assert result.splitlines()[0].startswith("SKIPPED completed ")


def test_errors_come_after_failures_and_the_action_is_the_decisive_one() -> None:
    broken = Check(
        id="storage.write", status=Verdict.ERROR, required=True, message="x", next_action="Look at y."
    )
    result = termination.termination_message(judgement(broken, SLOW))
    assert result.index("FAIL training.straggler") < result.index("ERROR storage.write")
    assert "Next: Drain node" in result and "Look at y" not in result


@pytest.mark.parametrize("count", [1, 5, 40])
def test_however_much_failed_the_action_is_never_cut_off(count: int) -> None:
    many = [replace(SLOW, id=f"fabric.check_{index}", message="ä" * 600) for index in range(count)]
    result = termination.termination_message(judgement(SLOW, *many), accept=("PASS",))
    assert len(result.encode()) <= termination.TERMINATION_LIMIT
    assert "Next: Drain node" in result and "zone 1.05" in result
    if count == 40:
        assert "\nAlso: FAIL fabric.check_" in result


def test_however_much_evidence_there_is_the_action_and_the_first_suspect_stay() -> None:
    suspects = tuple(
        replace(SLOW.culprits[0], id=str(index), node="n" * 200, evidence=("e" * 900,) * 9)
        for index in range(9)
    )
    crowded = replace(SLOW, message="m" * 5000, culprits=suspects, next_action="Drain it. " + "x" * 5000)
    result = termination.termination_message(judgement(crowded, crowded), accept=("PASS",))
    assert len(result.encode()) <= termination.TERMINATION_LIMIT
    assert "\nNext: Drain it." in result and "Gate: closed" in result and "suspect: rank 0" in result
    assert "Note: Ran on" in result


@given(st.text(max_size=3000), st.lists(st.text(max_size=2000), max_size=9), st.integers(0, 30))
def test_the_limit_holds_in_bytes_and_the_text_stays_readable(
    message: str, evidence: list[str], count: int
) -> None:
    culprit = replace(SLOW.culprits[0], evidence=tuple(evidence))
    check = replace(SLOW, message=message, culprits=(culprit,) * 6)
    result = termination.termination_message(
        judgement(check, *[replace(check, id=f"a.{n}") for n in range(count)])
    )
    assert len(result.encode()) <= termination.TERMINATION_LIMIT
    assert result.startswith("FAIL straggler")
    assert "\nNext: Drain node" in result and "indifference zone" in result
