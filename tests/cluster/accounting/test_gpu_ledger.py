"""The ledger with a real Kueue: its book across kills, and a budget that stops no running job."""

from collections.abc import Iterator
from typing import Any

import pytest

from agents.gpu_ledger.attempts import PROJECT_LABEL
from agents.gpu_ledger.budget import LIMIT_LABEL
from agents.gpu_ledger.check import CHECK
from rehearsal.controlplane.api import KubernetesApi
from tests.cluster.accounting.ledger_program import Standing, booked, check_is_active, ledger
from tests.cluster.accounting.usage_watcher import Watcher
from tests.cluster.queues.lab import Lab, flavor, machines, queues
from tests.cluster.waiting import eventually

POOL = "budget-a100"
FLAVORS = [flavor(POOL, "p4d.24xlarge", 8)]
EXEMPT = {
    "kind": "job",
    "name": "paper",
    "reason": "deadline",
    "approved_by": "lead@example.com",
    "last_day": "never",
}
# Every job here has 8 GPUs and, where it has a limit, 600 s: 1.33 GPU-hours at most.
LIMIT = {LIMIT_LABEL: "600"}
# The end of each pod of a job with several pods is known only while the program watches.
PROJECTS = {1: {PROJECT_LABEL: "llama"}, 2: {PROJECT_LABEL: "pairs"}}
PLENTY: dict[str, Any] = {"gpu_hours": 1_000_000, "stop": True}


@pytest.fixture(scope="module")
def lab(api: KubernetesApi) -> Iterator[Lab]:
    check_is_active(api)
    teams: Any = [{"name": "Budget", "weight": 1, "budgeted": True}]
    with machines(api, FLAVORS, {POOL: "p4d.24xlarge"}), queues(api, FLAVORS, teams) as lab:
        yield lab


@pytest.fixture(scope="module")
def standing(api: KubernetesApi, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with ledger(api, tmp_path_factory.mktemp("ledger"), [*lab.namespaces.values()]) as standing:
        yield standing


def test_every_second_is_booked_once_however_often_the_program_is_killed(
    api: KubernetesApi, lab: Lab, standing: Standing
) -> None:
    (namespace,) = standing.namespaces
    watcher = Watcher(api)
    standing.start(**PLENTY)
    for index in range(20):
        pods, gpus = (2, 2) if index % 10 == 0 else (1, 1 + index % 8)
        lab.submit(
            "Budget", f"short-{index}", gpus=gpus, pods=pods, seconds=1 + index % 3, labels=PROJECTS[pods]
        )
        if index in (7, 14):
            standing.again(**PLENTY)
    eventually(lambda: len(watcher.finished) == 20, "all jobs are done")
    standing.again(**PLENTY)
    book = booked(standing, namespace, lambda book: not book.open and len(book.done) == 20)
    watcher.stop()
    held = {(row.pool, row.project): row.held_s for row in book.totals()}
    assert held.keys() <= {(POOL, "llama"), (POOL, "pairs")}
    assert held[POOL, "llama"] == watcher.held[namespace, "llama"] > 0
    sure = held.get((POOL, "pairs"), 0)
    assert sure <= watcher.held[namespace, "pairs"] <= sure + sum(book.uncertain.values())
    measures = eventually(standing.metrics, standing.final_output)
    assert f'trainstack_budget_gpu_hours{{team="{namespace}"}} 1000000.0' in measures


def sent_back(lab: Lab, name: str) -> None:
    """Wait until a job waits, and holds no quota while it does."""
    eventually(lambda: lab.evictions(name), lambda: lab.workload(name))
    eventually(lambda: lab.condition(name, "QuotaReserved")["status"] == "False", lambda: lab.workload(name))
    assert not lab.admitted(name)


def message(lab: Lab, name: str) -> str:
    """What the check says about a job."""
    (state,) = lab.workload(name)["status"]["admissionChecks"]
    assert state["name"] == CHECK
    return str(state["message"])


def test_safe_mode(api: KubernetesApi, lab: Lab, standing: Standing) -> None:
    (namespace,) = standing.namespaces
    standing.again(gpu_hours=2, stop=True, exempt=[EXEMPT])
    lab.submit("Budget", "fits", gpus=8, seconds=600, labels=LIMIT)
    lab.runs("fits")
    lab.submit("Budget", "too-much", gpus=8, seconds=600, labels=LIMIT)
    sent_back(lab, "too-much")
    said = message(lab, "too-much")
    assert all(fact in said for fact in ("1.3 GPU-hours", "2.0 GPU-hours", "ends 20"))
    # One without GPUs costs nothing that is counted; one without a limit starts while anything is left.
    lab.submit("Budget", "no-gpu", tolerate=True)
    lab.submit("Budget", "no-limit", gpus=8, seconds=600)
    lab.runs("no-gpu", "no-limit")
    lab.submit("Budget", "paper", gpus=8, seconds=600, labels=LIMIT)
    lab.runs("paper")
    assert "exempt (lead@example.com: deadline)" in message(lab, "paper")

    lab.nodes("fits")
    eventually(lambda: lab.condition("fits", "PodsReady").get("status") == "True", "its pods are ready")
    book = booked(standing, namespace, lambda book: len(book.notes) >= 2)
    assert [(note.what, note.who.split("-")[1]) for note in book.notes] == [
        ("held", "too"),
        ("exempt", "paper"),
    ]

    standing.again(gpu_hours=0, stop=True)
    lab.submit("Budget", "late", gpus=8, seconds=600)
    sent_back(lab, "late")
    assert "no time limit" in message(lab, "late")
    # What runs goes on, though the budget is used up.
    for running in ("fits", "no-limit", "paper"):
        assert lab.admitted(running) and lab.evictions(running) == {}
    events = api.list("v1", "Event", namespace)
    assert {"OverBudget", "BudgetExempt"} <= {one["reason"] for one in events}

    standing.again(gpu_hours=1000, stop=True)
    lab.runs("too-much", "late")
    # What runs is booked as running, from when its pods were ready.
    booked(standing, namespace, lambda book: any(one.ready for one in book.open.values()))
