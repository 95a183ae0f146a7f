"""Answers to Kueue, where the API server refuses one because the Workload changed meanwhile."""

from collections.abc import Mapping
from typing import Any

import pytest

from agents.gpu_ledger.budget import GpuBudget
from agents.gpu_ledger.check import CHECK
from agents.gpu_ledger.decisions import BudgetTeam, Decisions
from agents.gpu_ledger.ledger import TeamBook
from agents.shared.api_server import ApiServerError
from tests.agents.gpu_ledger.cluster import Cluster
from tests.agents.gpu_ledger.workloads import MIDNIGHT, workload

NOW = MIDNIGHT + 60


class Server:
    """An API server that has a newer version of what is changed, so many times; keeps what it took."""

    def __init__(self, overtaken: int) -> None:
        self.overtaken = overtaken
        self.taken: list[str] = []
        self.events: list[str] = []

    def must(self, method: str, path: str, body: Any) -> Mapping[str, Any]:
        if self.overtaken:
            self.overtaken -= 1
            raise ApiServerError(409, "the object has been modified")
        self.taken.append(path.rpartition("/")[2])
        return asking()

    def ask(self, method: str, path: str, body: Any) -> tuple[int, Mapping[str, Any]]:
        self.events.append(body["reason"])
        return 201, {}


def asking() -> dict[str, Any]:
    """A Workload that holds quota and waits for the check."""
    found = workload(gpus=8, limit=600)
    found["metadata"]["resourceVersion"] = "1"
    found["status"]["admissionChecks"] = [{"name": CHECK, "state": "Pending"}]
    found["status"]["conditions"] = [{"type": "QuotaReserved", "status": "True"}]
    usage = {"flavors": {"nvidia.com/gpu": "a100"}, "resourceUsage": {"nvidia.com/gpu": "8"}}
    found["status"]["admission"] = {
        "clusterQueue": "team-a",
        "podSetAssignments": [{"name": "main", "count": 1, **usage}],
    }
    return found


@pytest.mark.parametrize("overtaken", [0, 1, 3])
def test_who_is_sent_back_is_noted_once_however_often_the_answer_came_too_late(overtaken: int) -> None:
    server: Any = Server(overtaken)
    budget = GpuBudget(usd=None, gpu_hours=0.0, stop=True, exempt=())
    book, decisions = TeamBook("A", MIDNIGHT), Decisions(server, BudgetTeam("team-a", budget), {})
    for _ in range(overtaken + 3):
        decisions.observe(asking(), book, NOW)
    assert [note.what for note in book.notes] == ["held"]
    assert server.events == ["OverBudget"]
    assert server.taken[0] == "status"


def test_a_decision_that_the_api_server_refuses_is_made_again_later() -> None:
    """One team's job: no change of it comes again."""
    cluster = Cluster()
    cluster.put(asking())
    cluster.refuses = lambda method, path: 500 if method == "PATCH" and "/workloads/" in path else 0
    made = cluster.run(cluster.collector(gpu_hours=1000.0, stop=True), rounds=3)
    cluster.requests.clear()
    cluster.refuses = lambda method, path: 0
    cluster.run(made, rounds=2)
    assert [path.rpartition("/")[2] for method, path in cluster.requests if method == "PATCH"][-1] == "status"
