"""Verdicts about how ranks lived and died, from recorded evidence."""

from typing import Any

import pytest

from smoke_training import verdict
from smoke_training.model import Cause, Check, Judgement, Verdict
from smoke_training.record import termination
from tests.smoke_training.samples import LIVENESS, lines, parsed, plan

HUNG = {
    "kind": "hung", "how": "behind", "what": "rank", "rank": 1, "node": 1, "phase": "training",
    "sequence": 41, "foremost": 42, "state": "S", "idle_s": 30.4, "busy_s": 0.2, "limit_s": 30.0,
}  # fmt: skip
KILLED = {
    "kind": "killed", "what": "rank", "rank": 1, "node": 1, "phase": "training", "sequence": 41, "pid": 77,
    "signal": 9, "oom_kills": 0,
}  # fmt: skip


def judged(*items: dict[str, Any]) -> tuple[Judgement, Check]:
    result = verdict.judge(plan(), parsed([*lines()[:2], *items]))
    return result, next(check for check in result.checks if check.id == "run.liveness")


def test_ranks_that_lived_to_the_end_pass_with_their_longest_silence() -> None:
    _, found = judged()
    assert found.status is Verdict.PASS
    assert found.measured is not None
    assert (found.measured.value, found.measured.unit, found.measured.n) == (1.5, "s", 700)


def test_a_run_that_was_cut_off_proves_nothing_about_liveness() -> None:
    cut = {**LIVENESS, "ranks": [{**LIVENESS["ranks"][0], "status": "RUNNING"}]}
    assert judged(cut)[1].status is Verdict.INCONCLUSIVE
    assert judged({**LIVENESS, "ranks": []})[1].status is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("item", "culprit", "words"),
    [
        (
            HUNG,
            ("rank", "1", Cause.HUNG),
            "rank 1 on node 1 has done nothing in phase training at exchange 41",
        ),
        ({**HUNG, "how": "stopped", "state": "T"}, ("rank", "1", Cause.HUNG), "has been stopped by a signal"),
        (
            {**HUNG, "how": "silent", "what": "launcher", "rank": None},
            ("node", "1", Cause.HUNG),
            "the launcher of node 1 has been silent for 30.4 s (limit 30.0 s)",
        ),
        (
            {**HUNG, "how": "stopped", "what": "torchrun", "rank": None},
            ("node", "1", Cause.HUNG),
            "torchrun of node 1 has been stopped",
        ),
        (
            {**HUNG, "how": "stalled", "what": "gang", "rank": None, "node": None},
            ("stack", "transport", Cause.HUNG),
            "all ranks wait in exchange 41 in phase training",
        ),
        (KILLED, ("rank", "1", Cause.KILLED), "rank 1 on node 1 was killed by SIGKILL in phase training"),
        ({**KILLED, "signal": None}, ("rank", "1", Cause.KILLED), "by a signal that was not recorded"),
        ({**KILLED, "signal": 63}, ("rank", "1", Cause.KILLED), "was killed by signal 63"),
        (
            {**KILLED, "what": "launcher", "rank": None, "signal": None},
            ("node", "1", Cause.KILLED),
            "the launcher of node 1 vanished",
        ),
        (
            {**KILLED, "what": "torchrun", "rank": None},
            ("node", "1", Cause.KILLED),
            "torchrun of node 1 was killed by SIGKILL",
        ),
        (
            {"kind": "never_started", "rank": 1, "node": 1, "attempt": 0, "waited_s": 120.0},
            ("rank", "1", Cause.NEVER_JOINED),
            "rank 1 on node 1 never started (waited 120.0 s)",
        ),
    ],
)
def test_every_incident_fails_with_its_culprit_and_its_words(
    item: dict[str, Any], culprit: tuple[str, str, Cause], words: str
) -> None:
    result, found = judged(item, {"kind": "stopped_early", "reason": "the run was ended before it"})
    assert result.verdict is Verdict.FAIL
    assert [(c.kind, c.id, c.cause) for c in found.culprits] == [culprit]
    assert words in found.message
    assert found.next_action
    message = termination.termination_message(result)
    assert message.startswith("FAIL liveness ")
    assert words in message
    if culprit[0] != "stack":
        assert found.culprits[0].node == "smoke-ab-1"


def test_a_rank_killed_out_of_memory_is_reported_as_such() -> None:
    _, found = judged({**KILLED, "oom_kills": 1})
    assert any("out of memory" in item for item in found.culprits[0].evidence)
    assert found.next_action is not None
    assert "memory" in found.next_action


def test_a_record_that_could_not_be_written_is_an_error_with_its_place() -> None:
    full = {"kind": "unrecorded", "path": "/w/result.json", "reason": "No space left on device"}
    result = verdict.judge(plan(), parsed([*lines(), full]))
    assert result.verdict is Verdict.ERROR
    found = next(check for check in result.checks if check.id == "run.completed")
    assert "/w/result.json" in found.message
    assert [(c.kind, c.id, c.cause) for c in found.culprits] == [
        ("storage", "/w/result.json", Cause.DISK_FULL)
    ]


def test_a_rank_without_room_on_its_disk_is_an_error_that_says_so() -> None:
    broke = {
        "kind": "failure",
        "rank": 1,
        "phase": "resume",
        "message": "OSError: [Errno 28] No space left on device",
    }
    result = verdict.judge(plan(), parsed([*lines()[:3], broke]))
    found = next(check for check in result.checks if check.id == "run.completed")
    assert found.status is Verdict.ERROR
    assert [c.cause for c in found.culprits] == [Cause.DISK_FULL]
