"""A run preempted by a more urgent one resumes from its checkpoint; its processes are real."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from components.kubernetes.queueing.quotas import FlavorArgs, TeamArgs
from infra.launchers import kubernetes
from infra.launchers.runplan import Mount, RunPlan
from rehearsal.controlplane.api import KubernetesApi, Object
from tests.cluster import local_node
from tests.cluster.queues import resuming_run as resuming
from tests.cluster.queues.lab import queues
from tests.cluster.waiting import eventually

LOCAL: FlavorArgs = {
    "name": "local", "node_labels": {"kubernetes.io/hostname": local_node.NAME}, "max_nodes": 1,
    "cpu": 60, "memory_gib": 200, "gpus": 0,
}  # fmt: skip
TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]
PLAN = RunPlan(
    name="train", image="example.com/train@sha256:" + "0" * 64, command=("python", "/code/main.py"),
    command_per="node", nodes=1, cpu=40, memory_gib=100, timeout_s=600, grace_s=1,
    mounts=(Mount(name="code", path="/code", config_map="code"),),
)  # fmt: skip


@pytest.fixture
def node(api: KubernetesApi, tmp_path: Path) -> Iterator[None]:
    """A node of this machine, whose pods are processes."""
    with local_node.joined(api, tmp_path):
        yield


def code(namespace: str) -> Object:
    metadata = {"name": "code", "namespace": namespace}
    text = Path(resuming.__file__).read_text()
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"main.py": text}}


def ended(job: Object) -> str:
    """The last condition of a Job that has ended, empty before."""
    rows = job["status"].get("conditions") or ()
    return next((row["type"] for row in rows if row["type"] in ("Complete", "Failed")), "")


@pytest.mark.usefixtures("node")
def test_a_preempted_run_goes_on_from_its_checkpoint(api: KubernetesApi, tmp_path: Path) -> None:
    root = tmp_path / "checkpoints"
    root.mkdir()
    evidence = root / "evidence.jsonl"

    def lines() -> list[dict[str, Any]]:
        return [json.loads(line) for line in evidence.read_text().splitlines()] if evidence.exists() else []

    with queues(api, [LOCAL], TEAM) as lab:
        env = {"CHECKPOINTS": str(root), "PYTHONPATH": str(Path(resuming.__file__).parents[3])}
        lab.api.create(code(lab.namespaces["Research"]))
        for body in kubernetes.job(dataclasses.replace(PLAN, env=env)):
            lab.create(lab.namespaces["Research"], body)
        eventually(lambda: len(lines()) > resuming.EVERY + 1, "it trains past a checkpoint", 90)
        lab.submit("Research", "urgent", cpu="40", priority="production")
        eventually(lambda: lab.evictions("train") == {"Preempted": 1}, "it makes way")
        lab.runs("urgent")
        eventually(lambda: not psutil.pid_exists(lines()[-1]["pid"]), "its process has ended")
        first = lines()
        lab.finish("urgent")
        eventually(lambda: ended(lab.job("train")), "it ends", 90)
        assert ended(lab.job("train")) == "Complete"
        again = lines()[len(first) :]
    stopped, resumed = first[-1]["step"], again[0]["step"] - 1
    # From the newest checkpoint; one that the end came into is no checkpoint.
    newest = stopped - stopped % resuming.EVERY
    assert resumed in (newest, newest - resuming.EVERY)
    assert 0 < resumed <= stopped < resuming.STEPS == again[-1]["step"]
    assert first[-1]["pid"] != again[0]["pid"]
    # What it trained twice, it trained alike: nothing of its state was lost.
    losses = {row["step"]: row["loss"] for row in again}
    twice = [row for row in first if row["step"] in losses]
    assert [row["loss"] for row in twice] == [losses[row["step"]] for row in twice]
