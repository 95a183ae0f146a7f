"""Stopped jobs start again once for each new value of their label, and no others do."""

import copy
from typing import Any

import pytest

from agents.queued_jobs.retries import BURST, EACH_S, Retries
from agents.shared.kueue import IDLE, RETRIED_NOTE, STOPPED_LABEL
from agents.shared.times import stamp
from tests.agents.queued_jobs.waiting import LIMIT, NOW, workload

LATER, ROUND_S = NOW + 3600, 10.0


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
        self.at = 0.0

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
            found["spec"] |= body.get("spec", {})
            found["metadata"]["annotations"] |= body["metadata"].get("annotations", {})
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
        self.obey(retries)

    def obey(self, retries: Retries) -> None:
        self.at += ROUND_S
        retries.obey(lambda uid: self.labels.get(uid, ""), LATER, self.at)


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
    server.obey(retries)
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
    stopped = idle()
    stopped["metadata"]["annotations"][RETRIED_NOTE] = "1"
    server = Server(stopped, train="1")
    retries = server.retries()
    server.turn(retries)
    assert server.paths == []
    server.labels["uid-train"] = "2"
    server.turn(retries)
    # Kueue itself sets the condition Requeued of this reason.
    assert server.paths == ["job-train"] and stopped["metadata"]["labels"] == {}


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


def test_requests_have_a_bound_and_one_team_delays_no_other() -> None:
    """A member can stop jobs as fast as it starts them: by a time limit of a second."""
    stopped = [at_the_limit(f"many-{number}", space="team-many") for number in range(200)]
    server = Server(*stopped, **{f"many-{number}": "1" for number in range(200)})
    retries, minutes = server.retries(), 10
    for turn in range(int(60 * minutes / ROUND_S)):
        if turn == 30:
            server.kept["job-single"] = at_the_limit("single")
            server.labels["uid-single"] = "1"
        for name in server.labels:
            server.labels[name] = str(turn)
        for one in stopped:
            # Stopped again.
            one |= {key: at_the_limit()[key] for key in ("spec", "status")}
            server.touch(one)
        server.turn(retries)
        if turn == 31:
            assert server.kept["job-single"]["spec"]["active"] is True
    assert len(server.paths) <= BURST + 60 * minutes / EACH_S + 1


@pytest.mark.parametrize("active", [True, False])
def test_a_change_that_is_refused_is_tried_ever_later(*, active: bool) -> None:
    """A webhook is down; of an active job, which Kueue keeps out of its queue, without a new label, too."""
    server = Server(workload(active=active, conditions=LIMIT), train="1")
    server.refuses = {"job-train": 500}
    log = list[str]()
    retries = server.retries(log.append)
    for _ in range(int(3600 / ROUND_S)):
        server.turn(retries)
    assert 3 <= len(server.paths) == len(log) <= 8
    server.refuses.clear()
    for _ in range(int(3600 / ROUND_S)):
        server.turn(retries)
    assert condition(server.kept["job-train"], "Requeued")["status"] == "True"


def idle() -> dict[str, Any]:
    """A job that was stopped as idle."""
    found = workload(active=False, conditions={"Evicted": ("Deactivated", "")})
    found["metadata"]["labels"][STOPPED_LABEL] = IDLE
    return found


@pytest.mark.parametrize("seen", ["corrected", "in vain", "only read"])
def test_an_idle_job_that_an_administrator_resumes_and_stops_stays_stopped(seen: str) -> None:
    stopped = idle()
    server = Server(stopped, train="")
    retries = server.retries()
    server.turn(retries)
    assert server.paths == []
    stopped["spec"]["active"] = True
    server.touch(stopped)
    if seen == "only read":
        retries.observe(copy.deepcopy(stopped))
    else:
        server.refuses = {"job-train": 500} if seen == "in vain" else {}
        server.turn(retries)
        assert (STOPPED_LABEL in stopped["metadata"]["labels"]) == (seen == "in vain")
    server.refuses.clear()
    stopped["spec"]["active"] = False
    server.touch(stopped)
    server.labels["uid-train"] = "9"
    for _ in range(100):
        server.turn(retries)
    assert stopped["spec"]["active"] is False and stopped["metadata"]["labels"] == {}
    # The next stop for idle GPUs is one again.
    stopped["metadata"]["labels"][STOPPED_LABEL] = IDLE
    server.touch(stopped)
    server.turn(retries)
    assert stopped["spec"]["active"] is True
