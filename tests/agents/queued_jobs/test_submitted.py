"""Unfinished jobs: their labels, and those without a Workload, by few requests."""

from collections.abc import Iterator
from typing import Any

import pytest

from agents.queued_jobs.submitted import CLASSES_S, LATE_S, UNPROCESSED_S, SubmittedJobs
from agents.shared.api_server import ApiServerError
from agents.shared.kueue import INTERNAL, INTERNAL_LABEL, PRIORITY_LABEL, RETRY_LABEL
from agents.shared.times import stamp
from tests.agents.queued_jobs.waiting import NOW, workload

JOBS, CLASSES = "/apis/batch/v1/jobs", "workloadpriorityclasses"


def submitted(
    name: str = "train", *, ended: str = "", suspend: bool = True, owner: str = "", **labels: str
) -> dict[str, Any]:
    keys = {"retry": RETRY_LABEL, "priority": PRIORITY_LABEL}
    head: dict[str, Any] = {
        "name": name, "namespace": "team-a", "uid": f"uid-{name}", "creationTimestamp": stamp(NOW),
        "labels": {keys[key]: value for key, value in labels.items()},
        "ownerReferences": [{"kind": owner, "name": "x", "controller": True}] if owner else [],
    }  # fmt: skip
    rows = [{"type": ended, "status": "True"}] if ended else []
    return {"metadata": head, "spec": {"suspend": suspend}, "status": {"conditions": rows}}


class Server:
    """Jobs, in pages, and their changes."""

    def __init__(self, *jobs: dict[str, Any]) -> None:
        self.jobs = {one["metadata"]["name"]: one for one in jobs}
        self.version, self.changes = 1, list[tuple[int, dict[str, Any]]]()
        self.requests: list[tuple[str, str]] = []
        self.refuses: dict[str, int] = {}

    def put(self, body: dict[str, Any], kind: str = "MODIFIED") -> None:
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.jobs[body["metadata"]["name"]] = body
        self.changes.append((self.version, {"type": kind, "object": body}))
        if kind == "DELETED":
            del self.jobs[body["metadata"]["name"]]

    def _asked(self, kind: str, path: str) -> None:
        self.requests.append((kind, path))
        for part, status in self.refuses.items():
            if part in path:
                raise ApiServerError(status, "refused by the test")

    def paged(self, path: str) -> Iterator[tuple[list[dict[str, Any]], str]]:
        self._asked("LIST", path)
        found = [*self.jobs.values()] if path == JOBS else []
        yield found[:1], str(self.version)
        yield found[1:], str(self.version)

    def every(self, path: str) -> Iterator[dict[str, Any]]:
        self._asked("LIST", path)
        for name, value in (("sweep", -10), ("production", 1000)):
            yield {"metadata": {"name": name}, "value": value}
        # Of the stack's own jobs.
        yield {"metadata": {"name": "background", "labels": {INTERNAL_LABEL: INTERNAL}}, "value": -30}

    def watched(self, path: str, version: str, seconds: float) -> Iterator[dict[str, Any]]:
        self._asked("WATCH", path)
        for at, change in self.changes if path == JOBS else []:
            if at > int(version):
                yield change
        yield {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}}

    def read(self, log: Any = lambda _: None) -> SubmittedJobs:
        return SubmittedJobs(self, ["team-a"], log)  # type: ignore[arg-type]  # what it uses


def polled(found: SubmittedJobs) -> SubmittedJobs:
    """Each kind once."""
    for _ in range(3):
        found.poll()
    return found


def reasons(found: SubmittedJobs, now: int) -> dict[str, str]:
    return {job.owner["name"]: why.kind for job, why in found.unprocessed(["team-a"], now)}


def test_a_label_is_read_whenever_it_changes_with_one_request_a_turn() -> None:
    server = Server(submitted(retry="1"), submitted("other"))
    found = polled(server.read())
    assert [found.retry(f"uid-{name}") for name in ("train", "other", "none")] == ["1", "", ""]
    server.put(submitted(retry="2"))
    server.put(submitted("new", retry="3"), "ADDED")
    server.put(submitted("other"), "DELETED")
    polled(found)
    assert [found.retry(f"uid-{name}") for name in ("train", "new")] == ["2", "3"]
    polled(found)
    assert [kind for kind, _ in server.requests] == ["LIST"] * 3 + ["WATCH"] * 6


def test_a_job_of_an_unknown_priority_class_has_a_reason_with_the_known_ones() -> None:
    server = Server(submitted(priority="urgent"))
    found = polled(server.read())
    assert reasons(found, NOW + LATE_S - 1) == {}
    ((job, why),) = found.unprocessed(["team-a"], NOW + LATE_S)
    assert why.kind == "no such priority" and "production, sweep in" in why.fix
    assert job.owner == {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-train"}
    # The Workloads of its namespace are not all known.
    assert [*found.unprocessed([], NOW + LATE_S)] == []


def test_priority_classes_are_read_rarely() -> None:
    """A job with an unknown class may stay for ever."""
    server = Server(submitted(priority="urgent"), submitted("known", priority="background"))
    found = polled(server.read())
    for now in range(NOW + LATE_S, NOW + LATE_S + 3600, 12):
        assert reasons(found, now)["train"] == "no such priority"
    assert sum(CLASSES in path for _, path in server.requests) <= 3600 / CLASSES_S
    assert reasons(found, NOW + 3600)["known"] == "not processed"


@pytest.mark.parametrize(
    "body",
    [
        submitted(suspend=False),
        submitted(ended="Complete"),
        submitted(ended="Failed"),
        submitted(owner="JobSet"),
        {**submitted(), "metadata": {**submitted()["metadata"], "namespace": "kube-system"}},
        {**submitted(), "metadata": {**submitted()["metadata"], "deletionTimestamp": stamp(NOW)}},
    ],
)
def test_what_kueue_processed_or_does_not_queue_has_no_reason(body: dict[str, Any]) -> None:
    assert reasons(polled(Server(body).read()), NOW + UNPROCESSED_S) == {}


def test_a_job_that_kueue_has_not_processed_has_a_reason_until_it_has_a_workload() -> None:
    jobs = submitted("scheduled", owner="CronJob"), submitted("known", priority="sweep")
    server = Server(submitted(), *jobs)
    found = polled(server.read())
    found.observe(workload("train"))
    late = NOW + UNPROCESSED_S
    assert reasons(found, late - 1) == {}
    assert reasons(found, late) == {"scheduled": "not processed", "known": "not processed"}
    found.only("team-a", [])
    assert "train" in reasons(found, late)
    found.observe(workload("train"))
    found.gone(workload("train")["metadata"]["uid"])
    assert "train" in reasons(found, late)


def test_classes_that_cannot_be_read_are_not_called_unknown() -> None:
    server = Server(submitted(priority="urgent"))
    server.refuses = {CLASSES: 403}
    found = polled(server.read())
    assert reasons(found, NOW + LATE_S) == {}
    assert reasons(found, NOW + UNPROCESSED_S) == {"train": "not processed"}


def test_changes_that_were_missed_are_listed_and_a_kind_that_is_not_installed_is_logged_once() -> None:
    server = Server(submitted(retry="1"))
    server.refuses = {"trainjobs": 404}
    log: list[str] = []
    found = polled(server.read(log.append))
    server.put(submitted(retry="2"))
    server.put(submitted("away"), "ADDED")
    server.put(submitted("away"), "DELETED")
    server.refuses["batch"] = 410
    polled(found)
    del server.refuses["batch"]
    server.changes.clear()
    server.requests.clear()
    polled(found)
    assert ("LIST", JOBS) in server.requests and found.retry("uid-train") == "2"
    assert len(log) == 1


def test_an_odd_object_stops_no_other_kind() -> None:
    odd = submitted()
    del odd["metadata"]["creationTimestamp"]
    log: list[str] = []
    found = polled(Server(odd, submitted("sound", retry="1")).read(log.append))
    assert len(log) == 1 and found.retry("uid-sound") == "1"
