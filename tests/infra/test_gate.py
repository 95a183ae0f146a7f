"""The gate in `status`, from states as the engine saves them."""

from typing import Any

import pytest

from infra.gate import gates, lines, undecided
from smoke_training.verdict_record import VerdictRecord

PREFIX = "urn:pulumi:dev-aws::trainstack::"
UNREADY = "[Pod trainstack-watch/smoke-1-kbn88]: containers with unready status: [waits] [Error] "
SLOW = VerdictRecord(
    "FAIL", "FAIL straggler 1.42x (tolerated: 1.15x), suspect rank 1", "trainstack-smoke/smoke-1"
)
FAILURE = f"{UNREADY}{SLOW.line()}\nNext"


def job(name: str, part: str = "job", pool: str = "a100", **more: Any) -> dict[str, Any]:
    rules = [{"key": "trainstack.dev/pool", "operator": "In", "values": [pool]}]
    required = {"nodeSelectorTerms": [{"matchExpressions": rules}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    namespace = "trainstack-smoke" if part == "job" else "trainstack-watch"
    return {
        "urn": f"{PREFIX}trainstack:index:SmokeTest$kubernetes:batch/v1:Job::dev-aws-smoke-{pool}-{part}",
        "type": "kubernetes:batch/v1:Job",
        "inputs": {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"completions": 2, "template": {"spec": {"affinity": affinity}}},
        },
        "created": "2026-11-23T05:37:09.158648456Z",
        "modified": "2026-11-23T05:39:54.906147654Z" if part == "watch" else "2026-11-23T05:37:09.158648456Z",
        **more,
    }


OTHER = {
    "urn": f"{PREFIX}trainstack:index:Queueing$kubernetes:batch/v1:Job::dev-aws-queueing-kueue-ready",
    "type": "kubernetes:batch/v1:Job", "inputs": {"metadata": {"name": "kueue-ready"}},
}  # fmt: skip


def test_a_stack_without_a_validation_has_no_gate() -> None:
    assert gates([]) == []
    assert gates([OTHER]) == []


def test_a_validation_that_passed_opens_it() -> None:
    (gate,) = gates([OTHER, job("smoke-1"), job("smoke-1", "watch")])
    assert (gate.is_open, gate.reason) == (True, "")
    assert gate.line.startswith("trainstack-smoke/smoke-1 passed 2026-11-23 05:39") and "2 nodes" in gate.line


def test_a_validation_that_failed_closes_it_with_its_own_words() -> None:
    errors = ["created but failed to initialize", "[BackoffLimitExceeded] Job has ...", FAILURE]
    (gate,) = gates([job("smoke-1"), job("smoke-1", "watch", initErrors=errors)])
    assert not gate.is_open
    assert gate.reason == SLOW.message
    (gate,) = gates([job("smoke-1"), job("smoke-1", "watch", initErrors=["timed out\nmore"])])
    assert (gate.state, gate.reason) == ("failed", "timed out")


def test_one_that_was_not_seen_to_end_opens_nothing() -> None:
    for seen in ([], [job("smoke-0", "watch")], [job("smoke-1", "watch", delete=True)]):
        (gate,) = gates([job("smoke-1"), *seen])
        assert (gate.is_open, gate.state) == (False, "running")
        assert gate.line.startswith("trainstack-smoke/smoke-1 running 2026-11-23 05:37")


def test_it_is_open_when_every_pool_of_the_spec_has_passed() -> None:
    passed = [job("smoke-1"), job("smoke-1", "watch")]
    failed = [job("smoke-2", pool="h100"), job("smoke-2", "watch", "h100", initErrors=[FAILURE])]
    closed = "gate       closed; `trainstack up` validates again"
    assert list(lines(gates(passed), ["a100"]))[-1] == "gate       open"
    shown = list(lines(gates(passed + failed), ["a100", "h100"]))
    assert [line.partition(" on 2 nodes of pool ")[2][:6] for line in shown] == ["a100", "h100: ", ""]
    assert shown[-1] == closed and SLOW.message in shown[1]
    assert list(lines(gates(passed), ["a100", "h100"]))[1:] == ["validation none of pool h100 yet", closed]
    assert list(lines([], [])) == []


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            "GateClosedError: job smoke-1 failed. INCONCLUSIVE straggler undecided. All of it is in s3://b/r",
            True,
        ),
        ("job smoke-1 failed. AlgorithmError: INCONCLUSIVE straggler undecided, FAIL is a word", True),
        ("GateClosedError: job smoke-1: INCONCLUSIVE straggler undecided. The gate opens for PASS.", True),
        ("GateClosedError: job smoke-1 failed. FAIL straggler rank 1. All of it is in s3://b/r", False),
        ("GateClosedError: job smoke-1 stopped. MaxRuntimeExceeded", False),
    ],
)
def test_a_job_without_a_cluster_is_undecided_by_its_headline(error: str, expected: bool) -> None:
    assert undecided([error]) is expected


def test_only_inconclusive_verdicts_are_undecided() -> None:
    open_question = UNREADY + VerdictRecord("INCONCLUSIVE", "FAIL is a word of this sentence").line()
    assert undecided(["created but failed to initialize", open_question])
    assert not undecided([FAILURE])
    assert not undecided([open_question, FAILURE])
    assert not undecided(["[BackoffLimitExceeded] Job has reached the specified backoff limit"])
    assert not undecided([])
