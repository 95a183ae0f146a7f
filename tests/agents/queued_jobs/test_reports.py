"""Events of jobs that do not start: one for each job and kind of reason, few, and fair between teams."""

from collections.abc import Mapping
from typing import Any

import pytest

from agents.queued_jobs.reasons import NOTICE_S
from agents.queued_jobs.reports import AGAIN_S, BURST, EACH_S, REPEAT_S, SETTLED_S, Reports
from agents.shared.kueue import DEADLINE_LABEL
from agents.shared.times import stamp
from tests.agents.queued_jobs.waiting import EXCEEDS, LIMIT, NOW, QUOTA, workload


class Server:
    """Events, as an API server keeps them."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, str], dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.refuses = 0

    def ask(self, method: str, path: str, body: Any) -> tuple[int, Mapping[str, Any]]:
        self.requests.append((method, path))
        parts = path.split("/")
        key = parts[4], body["metadata"]["name"] if method == "POST" else parts[-1]
        if self.refuses:
            return self.refuses, {"message": "refused by the test"}
        if (method == "POST") == (key in self.events):
            return (409 if method == "POST" else 404), {}
        self.events[key] = {**self.events.get(key, {}), **body}
        return 200, self.events[key]

    def of(self, job: str) -> dict[str, dict[str, Any]]:
        """The Events of a job, by their reason."""
        return {
            body["reason"]: body for body in self.events.values() if body["involvedObject"]["name"] == job
        }

    def reports(self) -> Reports:
        return Reports(self, log=lambda _: None)  # type: ignore[arg-type]  # what it uses


def test_an_event_is_of_the_job_and_has_the_fix() -> None:
    server = Server()
    reports = server.reports()
    reports.observe(workload(kind="TrainJob", active=False, conditions=LIMIT), NOW, 0.0)
    reports.send(NOW, SETTLED_S)
    (found,) = server.events.values()
    about = found["involvedObject"]
    assert (about["kind"], about["name"], about["uid"]) == ("TrainJob", "train", "uid-train")
    assert (found["reason"], found["type"], found["count"]) == ("RequeueLimit", "Warning", 1)
    assert "kubectl label trainjob train trainstack.dev/retry=" in found["message"]


LABEL, AGAIN, PATCH = "kubectl label", "kubectl replace --force", "kubectl patch job train"


@pytest.mark.parametrize(
    ("kind", "given", "has", "lacks"),
    [
        # Kueue deletes a pod that it stops; the image of a Job cannot be changed.
        ("Pod", workload(kind="Pod", active=False, conditions=LIMIT), AGAIN, LABEL),
        ("Job", workload(active=False, conditions=LIMIT), AGAIN, "kubectl patch"),
        ("JobSet", workload(kind="JobSet", active=False, conditions=LIMIT), f"{LABEL} jobset train", "{"),
    ],
)
def test_the_fix_can_be_applied_to_the_kind_of_the_job(
    kind: str, given: dict[str, Any], has: str, lacks: str
) -> None:
    server = Server()
    reports = server.reports()
    reports.observe(given, NOW, 0.0)
    reports.send(NOW, SETTLED_S)
    words = server.of("train")["RequeueLimit"]["message"]
    assert has in words and lacks not in words and server.of("train")["RequeueLimit"]["type"] == "Warning"


@pytest.mark.parametrize("kind", ["Job", "JobSet", "TrainJob"])
def test_only_a_job_can_have_more_time(kind: str) -> None:
    server = Server()
    reports = server.reports()
    given = running("86400")
    given["metadata"]["ownerReferences"][0]["kind"] = kind
    reports.observe(given, NOW, 0.0)
    reports.send(NOW, SETTLED_S)
    assert (PATCH in server.of("train")["EndsSoon"]["message"]) == (kind == "Job")


def test_a_job_that_is_queued_again_has_no_event_of_its_last_end() -> None:
    server = Server()
    reports = server.reports()
    reports.observe(workload(message="The workload is deactivated due to x", conditions=LIMIT), NOW, 0.0)
    reports.send(NOW, SETTLED_S)
    assert server.requests == []


def test_a_job_whose_pods_still_end_has_the_reason_of_its_stop() -> None:
    """Kueue sets the condition Requeued after their grace period."""
    server = Server()
    reports = server.reports()
    ending = workload(active=False, conditions={**LIMIT, "QuotaReserved": ("QuotaReserved", "")})
    reports.observe(ending, NOW, 0.0)
    reports.send(NOW, SETTLED_S)
    assert [*server.of("train")] == ["RequeueLimit"]


def test_a_job_that_starts_soon_gets_none_and_its_memory_is_released() -> None:
    server = Server()
    reports = server.reports()
    reports.observe(workload(message=QUOTA), NOW, 0.0)
    reports.send(NOW, SETTLED_S - 1)
    reports.observe(workload(conditions={"Admitted": ("Admitted", "")}), NOW, SETTLED_S - 1)
    reports.send(NOW, 2 * SETTLED_S)
    assert server.requests == [] and not reports.waiting


def test_one_event_for_each_kind_of_reason_however_often_it_changes() -> None:
    server = Server()
    reports = server.reports()
    for turn in range(int(REPEAT_S)):
        # Kueue's message changes with every GPU that others release.
        message = f"{QUOTA}, {turn} more needed" if turn // 60 % 2 else EXCEEDS
        reports.observe(workload(message=message), NOW + turn, float(turn))
        reports.send(NOW + turn, float(turn))
    assert server.of("train").keys() == {"Quota", "NeverFits"}
    assert len(server.requests) <= 2 * (1 + REPEAT_S / AGAIN_S)
    counts = [body["count"] for body in server.events.values()]
    assert sum(counts) == len(server.requests) and min(counts) > 1


def test_an_event_is_repeated_before_the_api_server_deletes_it() -> None:
    server = Server()
    reports = server.reports()
    reports.observe(workload(message=QUOTA), NOW, 0.0)
    for hour in (0, 1, 2):
        at = SETTLED_S + hour * 3600.0
        reports.send(NOW + int(at), at)
        reports.send(NOW + int(at) + 10, at + 10)
    assert server.of("train")["Quota"]["count"] == 3 and len(server.requests) == 3
    # It is gone: made again.
    server.events.clear()
    reports.send(NOW, 4 * 3600.0)
    assert server.of("train")["Quota"]["count"] == 1


def test_a_new_process_continues_the_event_of_the_one_before() -> None:
    server = Server()
    for process in (1, 2):
        reports = server.reports()
        reports.observe(workload(message=QUOTA), NOW, 0.0)
        reports.send(NOW, SETTLED_S)
        assert len(server.events) == 1, process
    reports.send(NOW, SETTLED_S + REPEAT_S)
    assert server.of("train")["Quota"]["count"] == 2


def test_writes_have_a_bound_and_one_team_delays_no_other() -> None:
    server = Server()
    reports = server.reports()
    for number in range(2000):
        reports.observe(workload(f"flood-{number}", EXCEEDS, space="team-flood"), NOW, 0.0)
    minutes = 10
    for at in range(0, 60 * minutes, 10):
        if at == 120:
            reports.observe(workload("single", QUOTA), NOW, float(at))
        reports.send(NOW + at, float(at))
        if at == 150:
            assert "Quota" in server.of("single")
    assert len(server.requests) <= BURST + 60 * minutes / EACH_S


def test_a_group_of_pods_is_as_many_writes_as_it_has_pods() -> None:
    """Its namespace waits for its next turn accordingly, and one call writes no more than is allowed."""
    server = Server()
    reports = server.reports()
    for number in range(10):
        group = workload(f"group-{number}", EXCEEDS, space="team-groups", kind="Pod")
        owner = group["metadata"]["ownerReferences"][0]
        group["metadata"]["ownerReferences"] = [
            {**owner, "name": f"group-{number}-{pod}", "uid": f"group-{number}-{pod}"} for pod in range(8)
        ]
        reports.observe(group, NOW, 0.0)
    for number in range(BURST):
        reports.observe(workload(f"single-{number}", EXCEEDS), NOW, 0.0)
    reports.send(NOW, SETTLED_S)
    assert len(server.requests) == BURST
    assert sum(space == "team-a" for space, _ in server.events) == BURST / 2


def test_writes_that_fail_or_are_repeated_count_for_their_team() -> None:
    """A member can delete Events: to repeat one is then two writes."""
    server = Server()
    reports = server.reports()
    for space in ("team-deletes", "team-a"):
        for number in range(60):
            reports.observe(workload(f"job-{number}", EXCEEDS, space=space), NOW, 0.0)
    at = SETTLED_S
    while len(server.events) < 120:
        reports.send(NOW, at)
        at += 60
    server.events = {key: body for key, body in server.events.items() if key[0] != "team-deletes"}
    server.requests.clear()
    reports.send(NOW, at + REPEAT_S)
    writes = [path.split("/")[4] for _, path in server.requests]
    assert abs(writes.count("team-a") - writes.count("team-deletes")) <= 2


def test_a_job_in_another_form_delays_no_other() -> None:
    server = Server()
    reports = server.reports()
    odd = workload("odd", EXCEEDS)
    del odd["metadata"]["ownerReferences"][0]["uid"]
    for one in (odd, workload("sound", EXCEEDS)):
        reports.observe(one, NOW, 0.0)
    reports.send(NOW, SETTLED_S)
    assert server.of("sound")


def test_a_refused_event_is_tried_again_later_and_stops_no_other() -> None:
    server = Server()
    reports = server.reports()
    server.refuses = 403
    reports.observe(workload(message=QUOTA), NOW, 0.0)
    reports.send(NOW, SETTLED_S)
    reports.send(NOW, SETTLED_S + AGAIN_S - 1)
    assert len(server.requests) == 1
    server.refuses = 0
    reports.send(NOW, SETTLED_S + AGAIN_S)
    assert server.of("train")["Quota"]["count"] == 1


def test_a_long_message_loses_its_end_and_not_the_fix() -> None:
    server = Server()
    reports = server.reports()
    reports.observe(workload("n" * 253, EXCEEDS + ", x" * 2000), NOW, 0.0)
    reports.send(NOW, SETTLED_S)
    (((_, name), found),) = server.events.items()
    assert len(found["message"]) == 1024 and "Fix: " in found["message"] and len(name) <= 253


def running(deadline: str) -> dict[str, Any]:
    """The Workload of a job that runs since NOW, with the label of a deadline that the API server added."""
    found = workload(conditions={"Admitted": ("Admitted", ""), "QuotaReserved": ("QuotaReserved", "")})
    found["metadata"]["labels"][DEADLINE_LABEL] = deadline
    return found


def test_a_job_is_announced_to_end_by_a_default_a_day_before() -> None:
    """Kueue does not write such a Workload in the days between."""
    server, week = Server(), 7 * 86_400
    reports = server.reports()
    reports.observe(running(str(week)), NOW, 0.0)
    for day in range(6):
        reports.send(NOW + day * 86_400, day * 86_400.0)
    assert server.requests == []
    reports.send(NOW + week - NOTICE_S, float(week - NOTICE_S))
    found = server.of("train")["EndsSoon"]
    assert stamp(NOW + week) in found["message"] and "activeDeadlineSeconds" in found["message"]
    # It ended.
    ended = workload(conditions={"Admitted": ("Admitted", ""), "Finished": ("Failed", "")})
    reports.observe(ended, NOW + week, float(week))
    reports.send(NOW + week + 3600, week + 3600.0)
    assert found["count"] == 1


@pytest.mark.parametrize("forged", ["9" * 63, "1e9", "-1", "x"])
def test_a_forged_deadline_is_none(forged: str) -> None:
    server = Server()
    reports = server.reports()
    reports.observe(running(forged), NOW, 0.0)
    reports.send(NOW, 1e9)
    assert server.requests == []


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (workload(message="LocalQueue x doesn't exist"), "NoSuchQueue"),
        (workload(requeueState={"count": 1, "requeueAt": "2027-01-01T00:00:00Z"}), "RetryLater"),
        (workload(active=False, conditions={"Evicted": ("Deactivated", "")}), "Deactivated"),
        (
            workload(
                conditions={"QuotaReserved": ("QuotaReserved", "")},
                admissionChecks=[{"name": "nodes", "state": "Pending", "message": "no capacity"}],
            ),
            "AdmissionCheck",
        ),
        (workload(), None),
        (workload(active=False, conditions={**LIMIT, "Finished": ("JobFinished", "")}), None),
    ],
)
def test_reasons_of_workloads(given: dict[str, Any], reason: str | None) -> None:
    server = Server()
    reports = server.reports()
    reports.observe(given, NOW, 0.0)
    reports.send(NOW, SETTLED_S)
    assert [*server.of("train")] == ([reason] if reason else [])
