"""The watcher of a validation: states, verdicts and time limits."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from agents.shared.api_server import FORBIDDEN_S, ApiServer
from agents.shared.kueue import AWAY_NOTE
from agents.waiting import watch as program
from agents.waiting.watch import End, Reader, RunWatch, WaitLimits
from smoke_training.verdict_record import VerdictRecord

LIMITS = WaitLimits(queue_s=100, start_s=50, total_s=300)
Seen = tuple[Mapping[str, Any] | None, list[Mapping[str, Any]], list[Mapping[str, Any]]]


def job(*, suspend: bool = False, uid: str = "u1", **conditions: tuple[str, str]) -> dict[str, Any]:
    rows = [
        {"type": kind, "status": "True", "reason": reason, "message": message}
        for kind, (reason, message) in conditions.items()
    ]
    return {
        "metadata": {"uid": uid},
        "spec": {"suspend": suspend, "parallelism": 2},
        "status": {"conditions": rows},
    }


def pod(phase: str, index: int = 0, container: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"annotations": {"batch.kubernetes.io/job-completion-index": str(index)}},
        "status": {"phase": phase, "containerStatuses": [{"state": container or {}}], **more},
    }


def ended(code: int, message: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "message": message}}


def workload(kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {
        "status": {"conditions": [{"type": kind, "status": status, "reason": reason, "message": message}]}
    }


def gave_up(ended: End | None, fact: str) -> bool:
    """Return whether a watch ended with an error that states a fact."""
    return ended is not None and (ended[0], ended[1].verdict) == (False, "ERROR") and fact in ended[1].message


QUEUED: Seen = (
    job(suspend=True),
    [],
    [workload("QuotaReserved", "False", "Pending", "insufficient unused quota for nvidia.com/gpu")],
)
RUNS: Seen = (job(), [pod("Running"), pod("Running", 1)], [])


def test_a_job_that_completes_passes_with_the_words_of_its_first_pod() -> None:
    pods = [pod("Succeeded", 1, ended(0, "second")), pod("Succeeded", 0, ended(0, "PASS in 60 s"))]
    found = RunWatch("u1", LIMITS).step(9, job(Complete=("", "")), pods, [])
    assert found == (True, VerdictRecord("PASS", "PASS in 60 s"))


SLOW = VerdictRecord("FAIL", "FAIL: rank 3 is slow", details=("Next: Drain it.",))


@pytest.mark.parametrize("reason", ["BackoffLimitExceeded", "PodFailurePolicy", "DeadlineExceeded"])
@pytest.mark.parametrize(
    ("message", "record"),
    [
        (SLOW.line(), SLOW),
        ("Killed\nby hand", VerdictRecord("ERROR", "Killed", details=("by hand",))),
        ("", VerdictRecord("ERROR", "")),
    ],
)
def test_a_failed_job_has_the_record_of_the_pod_that_failed(
    reason: str, message: str, record: VerdictRecord
) -> None:
    pods = [pod("Succeeded", 0, ended(0, "done")), pod("Failed", 1, ended(1, message))]
    found = RunWatch("u1", LIMITS).step(9, job(Failed=(reason, "no more tries")), pods if message else [], [])
    of_job = f"[{reason}] no more tries"
    expected = (
        replace(record, details=(*record.details, of_job)) if message else replace(record, message=of_job)
    )
    assert found == (False, expected)


def test_a_suspended_job_ends_at_its_limit_with_what_kueue_says() -> None:
    watch = RunWatch("u1", LIMITS)
    assert watch.step(0, *QUEUED) is None
    assert "insufficient unused quota for nvidia.com/gpu" in watch.state
    assert watch.step(100, *QUEUED) is None
    found = watch.step(101, *QUEUED)
    assert found is not None
    passed, record = found
    assert (passed, record.verdict) == (False, "ERROR")
    assert "within 100 s" in record.message and "insufficient unused quota" in record.message


def test_without_a_workload_the_controller_is_suspected() -> None:
    watch = RunWatch("u1", LIMITS)
    watch.step(0, job(suspend=True), [], [])
    assert "no Workload" in watch.state


def test_a_run_whose_pool_is_closed_says_until_when() -> None:
    found = workload("QuotaReserved", "False", "Pending", "The workload is deactivated")
    found["metadata"] = {"annotations": {AWAY_NOTE: "window-h100: the pool opens at 2026-12-01 11:30 UTC"}}
    watch = RunWatch("u1", LIMITS)
    watch.step(0, job(suspend=True), [], [found])
    assert "2026-12-01 11:30 UTC" in watch.state


def test_time_that_it_ran_is_not_time_in_the_queue() -> None:
    watch = RunWatch("u1", LIMITS)
    for now, seen in ((0, QUEUED), (60, QUEUED), (61, RUNS), (200, RUNS), (201, QUEUED), (239, QUEUED)):
        assert watch.step(now, *seen) is None
    assert watch.queued_s == pytest.approx(60 + 1 + 38)
    found = watch.step(242, *QUEUED)
    assert found is not None
    assert found[1].message.startswith("not admitted")


def test_pods_that_do_not_start_end_it_with_their_reason() -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
    unscheduled = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    ]
    pods = [pod("Pending", 0, waiting), pod("Pending", 1, conditions=unscheduled)]
    watch = RunWatch("u1", LIMITS)
    assert watch.step(10, job(), pods, []) is None
    found = watch.step(61, job(), pods, [])
    assert found is not None
    for fact in ("50 s", "0 of 2", "[ImagePullBackOff] not found", "[Unschedulable] 0/3 nodes"):
        assert fact in found[1].message


def test_an_eviction_gives_the_pods_their_time_again() -> None:
    watch = RunWatch("u1", LIMITS)
    pending = [pod("Pending"), pod("Pending", 1)]
    assert watch.step(0, job(), pending, []) is None
    assert watch.step(45, *QUEUED) is None
    assert watch.step(50, job(), pending, []) is None
    assert watch.step(99, job(), pending, []) is None
    assert watch.step(101, job(), pending, []) is not None


def test_a_run_without_an_end_ends_at_the_last_limit() -> None:
    watch = RunWatch("u1", LIMITS)
    assert watch.step(300, *RUNS) is None
    assert gave_up(watch.step(301, *RUNS), "within 300 s")


def test_another_job_of_the_same_name_is_another_run() -> None:
    found = RunWatch("u1", LIMITS).step(1, job(uid="u2"), [], [])
    assert gave_up(found, "replaced")


class Forbidding(ApiServer):
    """Forbids everything the first `times` times, then has a Job that is complete."""

    def __init__(self, times: float) -> None:
        self.times = times
        self.address = "https://api"

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Mapping[str, Any]]:
        self.times -= 1
        if self.times >= 0:
            return 403, {"message": 'User "u" cannot get resource "jobs"'}
        return 200, job(Complete=("", "")) if "/jobs/" in path else {"items": []}


def watched(server: ApiServer) -> End:
    return program.watch(Reader("lab", server), "run", RunWatch("u1", LIMITS), lambda _: None)


def test_an_api_server_that_does_not_know_the_role_yet_is_retried(now: list[float]) -> None:
    assert watched(Forbidding(3)) == (True, VerdictRecord("PASS", "passed"))


def test_a_refusal_that_lasts_ends_it(now: list[float]) -> None:
    passed, record = watched(Forbidding(float("inf")))
    assert not passed
    assert "https://api/apis/batch/v1/namespaces/lab/jobs/run: 403 User" in record.message
    assert FORBIDDEN_S <= now[0] < 2 * FORBIDDEN_S
