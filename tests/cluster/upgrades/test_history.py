"""Kueue is upgraded with thousands of finished jobs: none is lost, those that run stay, the queue goes on."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.clouds.kubectl import ClusterApi, connected
from rehearsal.controlplane.control_plane import ControlPlane, ControlPlaneOptions, running
from tests.cluster.history import copies, seconds, store
from tests.cluster.queues.lab import Lab
from tests.cluster.upgrades.jobs_in_use import (
    KUEUE,
    in_use,
    install_older,
    upgrade_definitions,
)  # fmt: skip
from tests.cluster.waiting import eventually
from trainstack.collect.object_lists import ListRefusedError, listed

# `alone` and `more`: thousands of objects load the machine.
pytestmark = [pytest.mark.more, pytest.mark.timeout(1200)]
FINISHED, QUEUED = 3_000, 20
PATIENCE_S = 300


@pytest.fixture
def old(tmp_path: Path) -> Iterator[ControlPlane]:
    """A cluster with the older releases."""
    with running(ControlPlaneOptions(tmp_path / "run")) as plane:
        install_older(plane)
        yield plane


def _condition(workload: Any, kind: str) -> bool:
    rows = (workload.get("status") or {}).get("conditions") or ()
    return any(row["type"] == kind and row["status"] == "True" for row in rows)


def _queue(cluster: ClusterApi) -> dict[str, dict[str, str]]:
    """Uids of Workloads by name: those of finished, running and waiting jobs."""

    def workloads() -> list[Any]:
        # An API server whose definitions have just changed asks to wait a moment.
        with contextlib.suppress(ListRefusedError):
            return listed(cluster, "/apis/kueue.x-k8s.io/v1beta2/workloads")
        return []

    found: dict[str, dict[str, str]] = {"finished": {}, "running": {}, "waiting": {}}
    for one in eventually(workloads, "Workloads can be listed"):
        kind = "running" if _condition(one, "Admitted") else "waiting"
        about = one["metadata"]
        found["finished" if _condition(one, "Finished") else kind][about["name"]] = about["uid"]
    return found


def _running_pods(lab: Lab) -> set[str]:
    found = lab.api.list("v1", "Pod", lab.namespaces["Research"], fields="status.phase=Running")
    return {pod["metadata"]["uid"] for pod in found}


def test_an_upgrade_with_a_long_history_loses_nothing(old: ControlPlane, tmp_path: Path) -> None:
    with in_use(old) as lab, connected(None, old.kubeconfig) as cluster:
        namespace = lab.namespaces["Research"]
        lab.submit("Research", "old", seconds=0, tolerate=True)
        eventually(lambda: lab.condition("old", "Finished").get("status") == "True", "a job has finished")
        store(old.home, old.access.authority, copies(lab.api, namespace, "old", FINISHED - 1))
        for index in range(QUEUED):
            lab.submit("Research", f"queued-{index}", gpus=8, pods=4)
        size = {"finished": FINISHED, "running": 3, "waiting": QUEUED + 2}

        def settled() -> bool:
            return {kind: len(rows) for kind, rows in _queue(cluster).items()} == size

        eventually(settled, lambda: {kind: len(rows) for kind, rows in _queue(cluster).items()}, PATIENCE_S)
        before, pods = _queue(cluster), _running_pods(lab)

        began = time.monotonic()
        upgrade_definitions(lab.api, "kueue", tmp_path)
        old.install("kueue", KUEUE, skip_crds=True)
        took = {"upgraded": seconds(began)}
        assert _queue(cluster) == before and _running_pods(lab) == pods

        # The new controller admits the next job, and no finished one again.
        began = time.monotonic()
        lab.finish("runs")
        eventually(lambda: lab.admitted("waits"), lambda: lab.workload("waits"), PATIENCE_S)
        took["next job admitted"] = seconds(began)
        (tmp_path / "seconds.json").write_text(json.dumps(took))
        lab.nodes("waits", 2)
        after = _queue(cluster)
        assert after["finished"] == before["finished"]
        assert after["waiting"].keys() < before["waiting"].keys()
        assert {**after["running"], **after["waiting"]}.items() <= {
            **before["running"],
            **before["waiting"],
        }.items()
