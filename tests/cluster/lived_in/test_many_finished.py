"""A stack with a history of three thousand jobs: its queue is read, a pool and a team are removed, then all.

Figures of ten thousand are in benchmarks/RESULTS.md: `OLD` is the only constant to change, and `LIMIT_S`.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.clouds.kubectl import connected
from rehearsal.controlplane.api import Access
from tests.cluster.history import copies, seconds, store
from tests.cluster.lived_in.stack import LivedIn, lived_in
from tests.cluster.lived_in.users import RESEARCH, TEAMS, VISION, Users
from tests.cluster.queues.members import member_of
from tests.cluster.waiting import eventually
from tests.rehearsal.runs import life
from tests.trainstack.cli.command import run_json
from trainstack.collect.object_lists import listed

# `alone` and `more`: thousands of objects load the machine.
pytestmark = [pytest.mark.timeout(1800), pytest.mark.more, pytest.mark.alone]
OLD = {VISION: 2_000, RESEARCH: 1_000}
"""Finished jobs of teams, each with its Workload and its pod."""
LIMIT_S = 300
LEDGER = "trainstack-accounting"
GPU = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}


def _vision_leaves(spec: Any) -> None:
    spec["teams"] = [team for team in spec["teams"] if team["name"] != "Vision"]


def _l4_removed(spec: Any) -> None:
    spec["layout"]["pools"] = [one for one in spec["layout"]["pools"] if one["name"] != "l4"]
    for team in spec["teams"]:
        team["gpus"].pop("l4", None)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[LivedIn]:
    with lived_in(tmp_path) as made:
        yield made


def test_a_long_history_delays_no_change_and_no_end(own: LivedIn, tmp_path: Path) -> None:
    users = Users(own.api)
    plane, authority = own.kubeconfig.parent, own.api.access.authority
    for team in OLD:
        users.finished(team, 1)
    users.reach({(team, "old-0"): "finished" for team in OLD})
    for team, count in OLD.items():
        store(plane, authority, copies(own.api, team, "old-0", count - 1))
    with connected(None, own.kubeconfig) as cluster:
        found = listed(cluster, "/apis/kueue.x-k8s.io/v1beta2/workloads")
    assert len(found) == sum(OLD.values())
    users.job(RESEARCH, "train", pods=2)
    users.job(VISION, "on-l4", requests=GPU)
    # The queue is not behind: a new job starts, also where the ledger, which admits it, reads all again.
    took = {"job started": _until_running(users, 3)}
    (ledger,) = (pod["metadata"]["name"] for pod in own.api.list("v1", "Pod", LEDGER))
    own.api.delete("v1", "Pod", ledger, LEDGER)
    users.job(RESEARCH, "later")
    took["job started by a new ledger"] = _until_running(users, 4)
    before = users.pods([RESEARCH])
    took["queue, by a member"] = _report(tmp_path, member_of(plane, own.api, VISION), "-n", VISION)
    took["queue, by the administrator"] = _report(tmp_path, own.api.access, "-A")
    for name, edit in {"pool removed": _l4_removed, "team removed": _vision_leaves}.items():
        began = time.monotonic()
        own.change(edit)
        took[name] = seconds(began)
        assert users.pods([RESEARCH]) == before
    assert own.api.find("v1", "Namespace", VISION) is None
    began = time.monotonic()
    own.stack.destroy()
    took["destroyed"] = seconds(began)
    assert own.rehearsal.status()["resources"] == life.NOTHING
    (tmp_path / "seconds.json").write_text(json.dumps(took))
    assert max(took.values()) < LIMIT_S, took


def _until_running(users: Users, pods: int) -> int:
    """Seconds until so many pods run."""
    began = time.monotonic()
    eventually(lambda: len(users.pods(TEAMS)) == pods, patience_s=LIMIT_S)
    return seconds(began)


def _report(folder: Path, access: Access, *words: str) -> int:
    """Seconds of `trainstack queue` with this login, which shows the running job of a team."""
    login, began = folder / "login", time.monotonic()
    login.write_text(json.dumps(access.kubeconfig()))
    code, found = run_json("queue", "--kubeconfig", str(login), *words)
    assert code == 0 and "on-l4" in [row["job"] for row in found["running"]]
    return seconds(began)
