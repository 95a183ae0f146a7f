"""Errors of a rank's own arithmetic, before the reduction hands them to all."""

from typing import Any

import pytest

from smoke_training.evidence import UndeliveredError
from smoke_training.judges.training import repeatable as judge
from smoke_training.model import Cause, Check, Verdict
from smoke_training.probes.training.numerics import repeats
from tests.smoke_training.samples import lines, numerics, parsed, plan


def repeat(rank: int, odd: int = 0, passes: int = 300, first: int | None = None) -> dict[str, Any]:
    return {"rank": rank, "passes": passes, "odd": odd, "first": first}


def judged(*found: dict[str, Any]) -> Check:
    record = {**numerics()[0], "repeats": list(found)}
    return judge.repeatable(plan(), parsed([lines()[0], record]))


def test_ranks_that_repeat_themselves_pass() -> None:
    found = judged(repeat(0), repeat(1))
    assert (found.status, found.required) == (Verdict.PASS, True)
    assert found.message.endswith("600 backward passes")


def test_one_odd_pass_in_hundreds_accuses_its_rank_only() -> None:
    found = judged(repeat(0), repeat(1, odd=2, first=150))
    assert found.status is Verdict.FAIL
    ((culprit),) = found.culprits
    assert (culprit.kind, culprit.id, culprit.cause) == ("rank", "1", Cause.CORRUPTION)
    assert culprit.node == "smoke-ab-1"
    assert "2 of 300" in found.message
    assert "at step 150" in found.message


def test_a_rank_that_never_repeats_itself_is_accused_where_others_do() -> None:
    found = judged(repeat(0), repeat(1, odd=290, first=2))
    assert [item.id for item in found.culprits] == ["1"]


def test_software_that_repeats_nothing_accuses_no_rank() -> None:
    found = judged(repeat(0, odd=280), repeat(1, odd=290))
    assert (found.status, found.required) == (Verdict.SKIPPED, False)
    accelerators = judged()
    assert (accelerators.status, accelerators.required) == (Verdict.SKIPPED, False)


def test_gradients_that_were_not_looked_at_are_no_pass() -> None:
    with pytest.raises(UndeliveredError):
        judge.repeatable(plan(), parsed(lines()[:1]))


def test_odd_is_what_differs_from_most_passes_of_the_same_work() -> None:
    own = {step: (step % 4, f"work {step % 4}") for step in range(40)}
    assert repeats(2, own).passes == 40
    own[17] = (1, "flipped")
    own |= {40: (9, "done once")}
    found = repeats(2, own)
    assert (found.rank, found.passes, found.odd, found.first) == (2, 40, 1, 17)
