"""Requests of the programs that watch jobs, and their bytes, do not grow with the number of finished jobs."""

import json
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from agents.gpu_ledger.book_store import NAME
from agents.shared.times import stamp
from components.kubernetes.accounting import gpu_ledger
from components.kubernetes.idle import idle_gpus
from components.kubernetes.programs.program import Program
from components.kubernetes.queueing.kueue import API_VERSION
from rehearsal.controlplane.api import KubernetesApi
from rehearsal.controlplane.processes import free_ports
from tests.cluster.accounting.ledger_program import ledger
from tests.cluster.counting_proxy import Counted, counting
from tests.cluster.manifests import manifests
from tests.cluster.programs import started
from tests.cluster.queues.lab import IMAGE
from tests.cluster.waiting import eventually
from tests.components.graph import deploy_graph

ENDED = 40
WATCHED = "/workloads?watch=true"
CONTAINER = {"name": "main", "image": "example.com/none:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}


def finished_jobs(api: KubernetesApi, namespace: str) -> None:
    """Workloads and pods of jobs that ended."""
    for number in range(ENDED):
        metadata = {"name": f"done-{number}", "namespace": namespace}
        spec: Any = {"restartPolicy": "Never", "containers": [CONTAINER]}
        api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        ended = {"status": {"phase": "Succeeded"}}
        api.patch("v1", "Pod", metadata["name"], ended, namespace, subresource="status")
        sets = [{"name": "main", "count": 1, "template": {"spec": spec}}]
        workload = {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata}
        api.create({**workload, "spec": {"queueName": "default", "podSets": sets}})
        condition = {"type": "Finished", "status": "True", "reason": "JobFinished", "message": ""}
        status = {"conditions": [{**condition, "lastTransitionTime": stamp(1_795_564_800)}]}
        api.patch(
            API_VERSION, "Workload", metadata["name"], {"status": status}, namespace, subresource="status"
        )


def start(
    program: Program, words: dict[str, object], counted: Counted, token: str, folder: Path
) -> tuple["subprocess.Popen[str]", int]:
    """The program behind a proxy, once it serves metrics."""
    (port,) = free_ports(1)
    process = started(program, {**words, "port": port}, counted.access, token, folder)

    def serves() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                return bool(answer.read().strip())
        except OSError:
            return False

    eventually(serves, process.poll)
    return process, port


def test_the_ledger_lists_once_whatever_ends(api: KubernetesApi, namespace: str, tmp_path: Path) -> None:
    config = json.dumps({"teams": {namespace: "A"}, "budgets": {}, "prices": {}, "prometheus": None})
    with ledger(api, tmp_path, [namespace]), counting(api.access, tmp_path / "proxy") as counted:
        token = api.token(gpu_ledger.NAMESPACE, NAME)
        process, _ = start(gpu_ledger.PROGRAM, {"config": config}, counted, token, tmp_path)
        try:
            workloads = f"/namespaces/{namespace}/workloads"
            assert len(counted.of("GET", workloads)) == 1
            finished_jobs(api, namespace)
            seen = len(counted.of("GET", WATCHED))
            eventually(lambda: len(counted.of("GET", WATCHED)) > seen, lambda: counted.requests)
            assert len(counted.of("GET", workloads)) == 1 and len(counted.of("GET", "limit=1")) == 1
            # Each change was read once; a book of jobs that held nothing is as small as before.
            assert len(counted.of("GET", WATCHED)) <= 8
        finally:
            process.kill()
            process.communicate()


@pytest.fixture
def token(api: KubernetesApi, namespace: str) -> Any:
    """A token with the rights of the idle GPU watcher."""
    args: idle_gpus.IdleGpusArgs = {
        "prometheus": "http://127.0.0.1:1", "namespaces": [namespace], "interactive_pools": [], "minutes": 45,
        "grace_minutes": 15, "jobs": "announce", "interval_s": 1800, "image": IMAGE,
    }  # fmt: skip
    kinds = ("ClusterRole", "RoleBinding", "ServiceAccount", "Namespace")
    graph = deploy_graph(lambda: {"space": idle_gpus.IdleGpus("i", args).namespace})
    bodies = [body for body in manifests(graph) if body["kind"] in kinds]
    for body in bodies:
        api.apply(body)
    yield api.token(idle_gpus.NAMESPACE, idle_gpus.NAME)
    for body in reversed(bodies):
        metadata = body["metadata"]
        api.delete(body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace", ""))


def test_the_list_of_pods_is_as_long_as_before_though_pods_ended(
    api: KubernetesApi, namespace: str, token: str, tmp_path: Path
) -> None:
    words: dict[str, object] = {
        "prometheus": "http://127.0.0.1:1", "namespaces": json.dumps([namespace]), "interactive-pools": "[]",
        "minutes": 45, "grace-minutes": 15, "jobs": "announce", "interval-s": 1800, "startup-s": 0,
        "every-s": 0.5,
    }  # fmt: skip
    with counting(api.access, tmp_path / "proxy") as counted:
        process, _ = start(idle_gpus.PROGRAM, words, counted, token, tmp_path)
        try:
            # A request of a process that starts may be answered before its rights are known.
            before = eventually(lambda: [size for size in counted.of("GET", "/pods?") if size][1:2], "rounds")
            finished_jobs(api, namespace)
            rounds = len(counted.requests)
            eventually(lambda: len(counted.requests) > rounds + 2, "two rounds")
            # Only the version of the list has another number of digits, at most.
            assert abs(counted.of("GET", "/pods?")[-2] - before[0]) < 10
            assert {method for method, _, _ in counted.requests} == {"GET"}
            assert len(counted.requests) == len(counted.of("GET", "/pods?"))
        finally:
            process.kill()
            process.communicate()
