"""Stopped jobs start again once for each new value of their label, and no others do."""

import copy
from typing import Any

import pytest

from agents.queued_jobs.retries import LONGEST_S, Retries
from agents.shared.kueue import IDLE, RETRIED_NOTE, STOPPED_LABEL
from agents.shared.times import stamp
from tests.agents.queued_jobs.waiting import LIMIT, NOW, workload

LATER = NOW + 3600


class Server:
    """Workloads with versions, and labels of jobs by their UID."""

    def __init__(self, *workloads: dict[str, Any], **labels: str) -> None:
        self.kept = {one["metadata"]["name"]: one for one in workloads}
        self.labels = {f"uid-{name}": value for name, value in labels.items()}
        self.paths: list[str] = []
        self.refuses: dict[str, int] = {}
        """Status of an error, by the name of the Workload."""
        self.between: Any = lambda: None
        """Another program's change after the first one of ours."""

    def ask(self, method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        name, _, part = path.partition("/workloads/")[2].partition("/")
        self.paths.append(path.partition("/workloads/")[2])
        if status := self.refuses.get(name):
            return status, {"message": "refused by the test"}
        found = self.kept[name]
        if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            return 409, {"message": "the object has been modified"}
        assert method == "PATCH" and body["metadata"]["uid"] == found["metadata"]["uid"]
        if part == "status":
            found["status"] |= body["status"]
        else:
            found["spec"] |= body["spec"]
            found["metadata"]["annotations"] |= body["metadata"]["annotations"]
            for key in body["metadata"]["labels"]:
                found["metadata"]["labels"].pop(key, None)
        self.touch(found)
        answer = copy.deepcopy(found)
        self.between()
        return 200, answer

    def touch(self, found: dict[str, Any]) -> None:
        found["metadata"]["resourceVersion"] = str(int(found["metadata"]["resourceVersion"]) + 1)

    def retries(self, log: Any = lambda _: None) -> Retries:
        return Retries(self, log)  # type: ignore[arg-type]  # what it uses

    def turn(self, retries: Retries) -> None:
        """One round of the program."""
        for one in self.kept.values():
            retries.observe(copy.deepcopy(one))
        retries.obey(lambda uid: self.labels.get(uid, ""), LATER)


def at_the_limit(name: str = "train", **more: Any) -> dict[str, Any]:
    return workload(name, active=False, conditions=LIMIT, **more)


def condition(found: dict[str, Any], kind: str) -> dict[str, Any]:
    (row,) = [row for row in found["status"]["conditions"] if row["type"] == kind]
    return dict(row)


def test_a_job_at_the_requeue_limit_starts_again_once_for_each_value() -> None:
    stopped = at_the_limit()
    server = Server(stopped, train="1")
    retries = server.retries()
    server.turn(retries)
    assert stopped["spec"]["active"] is True
    # Kueue 0.19.2 queues a job only after its condition is changed.
    requeued = condition(stopped, "Requeued")
    assert (requeued["status"], requeued["lastTransitionTime"]) == ("True", stamp(LATER))
    assert condition(stopped, "Evicted")["lastTransitionTime"] == stamp(NOW)
    writes = len(server.paths)
    # It fails again. The value is kept: the same one does not start the job for ever.
    again = at_the_limit()
    again["metadata"] |= {"annotations": stopped["metadata"]["annotations"], "resourceVersion": "9"}
    server.kept["job-train"] = again
    for process in (retries, server.retries()):
        server.turn(process)
    assert len(server.paths) == writes and again["metadata"]["annotations"] == {RETRIED_NOTE: "1"}
    server.labels["uid-train"] = "2"
    server.turn(retries)
    assert again["spec"]["active"] is True
    # A label that is removed asks for nothing.
    server.kept["job-train"] = at_the_limit()
    server.labels.clear()
    writes = len(server.paths)
    server.turn(retries)
    assert len(server.paths) == writes


def test_a_member_starts_no_job_that_an_administrator_stopped() -> None:
    """Kueue leaves the condition Evicted of its own stop as it was: on a job that was queued again since."""
    stopped = at_the_limit()
    server = Server(stopped, train="1")
    retries = server.retries()
    server.turn(retries)
    stopped["spec"]["active"] = False
    server.touch(stopped)
    assert condition(stopped, "Evicted")["reason"] == LIMIT["Evicted"][0]
    server.labels["uid-train"] = "2"
    writes = len(server.paths)
    for process in (retries, server.retries()):
        server.turn(process)
    assert stopped["spec"]["active"] is False and len(server.paths) == writes


def test_a_job_that_changed_since_it_was_read_is_not_started() -> None:
    stopped = at_the_limit()
    server = Server(stopped, train="1")
    retries = server.retries()
    retries.observe(copy.deepcopy(stopped))
    server.touch(stopped)
    retries.obey(lambda uid: server.labels.get(uid, ""), LATER)
    assert stopped["spec"]["active"] is False
    server.turn(retries)
    assert stopped["spec"]["active"] is True


@pytest.mark.parametrize("label", ["1", ""])
def test_a_retry_that_was_interrupted_is_completed(label: str) -> None:
    """Kueue writes the status in between, or an administrator made the job active: it waited for ever."""
    stopped = at_the_limit()
    server = Server(stopped, train="1")
    retries = server.retries()
    server.between = lambda: server.touch(stopped)
    server.turn(retries)
    assert stopped["spec"]["active"] is True and condition(stopped, "Requeued")["status"] == "False"
    server.between, server.labels["uid-train"] = (lambda: None), label
    server.turn(server.retries())
    assert condition(stopped, "Requeued")["status"] == "True"
    writes = len(server.paths)
    server.turn(retries)
    assert len(server.paths) == writes


def test_a_job_that_held_idle_gpus_starts_again() -> None:
    idle = workload(active=False, conditions={"Evicted": ("Deactivated", "")})
    idle["metadata"]["labels"][STOPPED_LABEL] = IDLE
    idle["metadata"]["annotations"][RETRIED_NOTE] = "1"
    server = Server(idle, train="1")
    retries = server.retries()
    server.turn(retries)
    assert server.paths == []
    server.labels["uid-train"] = "2"
    server.turn(retries)
    # Kueue itself sets the condition Requeued of this reason.
    assert server.paths == ["job-train"] and idle["metadata"]["labels"] == {}


def test_others_are_left_alone() -> None:
    """Of an administrator, of Kueue before the number of attempts is reset; pods do not return."""
    server = Server(
        workload(active=False, conditions={"Evicted": ("Deactivated", "")}),
        workload("other", active=True, conditions={"Evicted": ("PodsReadyTimeout", "")}),
        at_the_limit("counted", requeueState={"count": 10}),
        workload("ending", active=False, conditions={**LIMIT, "QuotaReserved": ("QuotaReserved", "")}),
        at_the_limit("alone", kind="Pod"),
        train="1", other="1", counted="1", ending="1", alone="1",
    )  # fmt: skip
    server.turn(server.retries())
    assert server.paths == []


def test_one_job_that_cannot_start_and_one_team_stop_no_others() -> None:
    stopped = [at_the_limit(f"many-{number}", space="team-many") for number in range(50)]
    stopped += [at_the_limit("broken"), at_the_limit("sound")]
    server = Server(*stopped, **{one["metadata"]["name"].removeprefix("job-"): "1" for one in stopped})
    server.refuses = {"job-broken": 500, "job-many-49": 403}
    log: list[str] = []
    server.turn(server.retries(log.append))
    started = {name for name, one in server.kept.items() if one["spec"]["active"]}
    assert started == server.kept.keys() - server.refuses.keys()
    assert sum("500" in line for line in log) == 1
    # In turn: the second team does not wait for the fifty jobs of the first.
    assert server.paths.index("job-sound") < 5


def test_a_job_in_another_form_stops_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = at_the_limit("odd")
    odd["status"]["conditions"].append({"type": "Requeued", "status": "False"})
    server = Server(odd, at_the_limit("sound"), odd="1", sound="1")
    server.turn(server.retries())
    assert server.kept["job-sound"]["spec"]["active"] is True


def test_activations_of_one_round_have_a_bound_and_go_on_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = [at_the_limit(f"many-{number}") for number in range(40)]
    server = Server(*stopped, **{f"many-{number}": "1" for number in range(40)})
    clock = iter(float(second) for second in range(1000))
    monkeypatch.setattr("agents.queued_jobs.retries.time.monotonic", lambda: next(clock))
    retries, before = server.retries(), 0
    while any(not one["spec"]["active"] for one in stopped):
        server.turn(retries)
        started = sum(one["spec"]["active"] for one in stopped)
        assert before < started <= before + LONGEST_S
        before = started
