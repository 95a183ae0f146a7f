"""Stopped jobs start again once for each new value of their label, and no others do."""

from collections.abc import Iterator, Mapping
from typing import Any

from agents.queued_jobs.retries import EVERY_S, Retries
from agents.shared.api_server import ApiServerError
from agents.shared.kueue import IDLE, RETRIED_NOTE, RETRY_LABEL, STOPPED_LABEL
from tests.agents.queued_jobs.waiting import LIMIT, workload


class Server:
    """Labels of jobs by namespace, plural and name, and the changes of Workloads."""

    def __init__(self, **labels: str) -> None:
        self.labels = {("team-a", "jobs", name): value for name, value in labels.items()}
        self.changes: list[tuple[str, dict[str, Any]]] = []
        self.lists: list[str] = []
        self.refuses, self.conflicts = 0, False

    def every(self, path: str, **selectors: str) -> Iterator[Mapping[str, Any]]:
        self.lists.append(path)
        if self.refuses:
            raise ApiServerError(self.refuses, "refused by the test")
        assert selectors == {"labelSelector": RETRY_LABEL}
        _, _, _, _, _, namespace, plural = path.split("/")
        for (space, kind, name), value in self.labels.items():
            if (space, kind) == (namespace, plural):
                yield {"metadata": {"name": name, "labels": {RETRY_LABEL: value}}}

    def ask(self, method: str, path: str, body: Any) -> tuple[int, Mapping[str, Any]]:
        self.changes.append((path.partition("/workloads/")[2], body))
        return (409 if self.conflicts else 200), {}

    def retries(self) -> Retries:
        return Retries(self, log=lambda _: None)  # type: ignore[arg-type]  # what it uses


def at_the_limit(**more: Any) -> dict[str, Any]:
    return workload(active=False, conditions=LIMIT, **more)


def test_a_job_at_the_requeue_limit_starts_again_once_for_each_value() -> None:
    server = Server(train="1")
    retries, stopped = server.retries(), at_the_limit()
    retries.observe(stopped)
    retries.obey(0.0)
    ((name, change),) = server.changes
    assert name == "job-train" and change["spec"] == {"active": True}
    # It is kept: the same value does not start the job again for ever.
    assert change["metadata"]["annotations"] == {RETRIED_NOTE: "1"}
    stopped["metadata"]["annotations"][RETRIED_NOTE] = "1"
    for again in (retries, server.retries()):
        again.observe(stopped)
        again.obey(10 * EVERY_S)
    assert len(server.changes) == 1
    server.labels["team-a", "jobs", "train"] = "2"
    retries.obey(20 * EVERY_S)
    assert len(server.changes) == 2


def test_kueue_queues_a_job_only_after_its_condition_is_changed() -> None:
    """Kueue 0.19.2 writes another reason of the eviction than the one for which it queues a job again."""
    server = Server(train="1")
    retries, stopped = server.retries(), at_the_limit()
    stopped["metadata"]["resourceVersion"] = "7"
    requeued = {"type": "Requeued", "status": "False", "reason": LIMIT["Evicted"][0], "message": "x"}
    stopped["status"]["conditions"].append(requeued)
    retries.observe(stopped)
    server.conflicts = True
    retries.obey(0.0)
    # It changed meanwhile: not activated, or it would wait for ever.
    assert [target for target, _ in server.changes] == ["job-train/status"]
    server.conflicts = False
    retries.obey(EVERY_S)
    (_, (_, first), (second, _)) = server.changes
    assert first["metadata"] == {"resourceVersion": "7"} and second == "job-train"
    (evicted, changed) = first["status"]["conditions"]
    assert evicted == stopped["status"]["conditions"][0]
    assert (changed["type"], changed["status"]) == ("Requeued", "True")


def test_a_job_that_held_idle_gpus_starts_again() -> None:
    server = Server(train="1")
    retries = server.retries()
    idle = workload(active=False, conditions={"Evicted": ("Deactivated", "")})
    idle["metadata"]["labels"][STOPPED_LABEL] = IDLE
    idle["metadata"]["annotations"][RETRIED_NOTE] = "1"
    retries.observe(idle)
    retries.obey(0.0)
    assert server.changes == []
    server.labels["team-a", "jobs", "train"] = "2"
    retries.obey(EVERY_S)
    ((_, change),) = server.changes
    assert change["metadata"]["labels"] == {STOPPED_LABEL: None}


def test_others_are_left_alone() -> None:
    """Of an administrator, of Kueue before the number of attempts is reset; pods do not return."""
    server = Server(train="1", other="1")
    retries = server.retries()
    for one in (
        workload(active=False, conditions={"Evicted": ("Deactivated", "")}),
        workload("other", active=True, conditions=LIMIT),
        at_the_limit(requeueState={"count": 10}),
        workload(active=False, conditions={**LIMIT, "QuotaReserved": ("QuotaReserved", "")}),
        at_the_limit(kind="Pod"),
    ):
        retries.observe(one)
    retries.obey(0.0)
    assert server.lists == [] and server.changes == []


def test_labels_of_one_namespace_are_read_at_once_and_each_rarely() -> None:
    server = Server()
    retries = server.retries()
    spaces = [f"team-{number}" for number in range(5)]
    for space in spaces:
        retries.observe(at_the_limit(space=space))
    for at in range(0, 60, 10):
        retries.obey(float(at))
    assert len(server.lists) == 6 and {path.split("/")[5] for path in server.lists} == {*spaces}
    server.refuses = 403
    retries.obey(100.0)
    retries.gone("w-team-0-train")
    retries.only("team-1", set())
    server.refuses = 0
    server.lists.clear()
    for at in range(200, 230, 10):
        retries.obey(float(at))
    assert {path.split("/")[5] for path in server.lists} == {"team-2", "team-3", "team-4"}
