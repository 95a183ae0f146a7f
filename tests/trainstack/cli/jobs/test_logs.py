"""`trainstack logs` with a manager and two clusters, whose API servers are tables of answers."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.clouds import kubectl
from infra.clouds.kubectl import ApiResponse
from infra.errors import UserError
from infra.outputs.cluster import TeamOutputs
from infra.outputs.manager import ManagerOutputs
from tests.trainstack.cli.command import run
from tests.trainstack.cli.test_access import EXPORTED
from trainstack.cli import scope

SPACE = "team-vision"
TEAM = TeamOutputs(name="Vision", namespace=SPACE, queue="default")
_LABEL = "batch.kubernetes.io/job-name"


def workload(job: str, cluster: str = "", *, ended: bool = False, kind: str = "Job") -> dict[str, Any]:
    about = {
        "name": f"{kind.lower()}-{job}", "namespace": SPACE, "creationTimestamp": "2026-11-30T04:00:00Z",
        "ownerReferences": [{"name": job, "kind": kind}],
    }  # fmt: skip
    conditions = [{"type": "Finished", "status": "True"}] if ended else []
    return {"metadata": about, "status": {"clusterName": cluster, "conditions": conditions}}


def pod(name: str, index: int, *, init: bool = False, crashed: bool = False) -> dict[str, Any]:
    state = {"waiting": {"reason": "CrashLoopBackOff"}} if crashed else {"running": {}}
    status: dict[str, Any] = {
        "containerStatuses": [{"name": "main", "state": state, "restartCount": int(crashed)}]
    }
    if init:
        status["initContainerStatuses"] = [{"name": "plugin", "state": {"terminated": {}}}]
    annotations = {"batch.kubernetes.io/job-completion-index": str(index)}
    about = {"name": name, "uid": name, "namespace": SPACE, "annotations": annotations}
    return {"metadata": about, "spec": {"containers": [{"name": "main"}]}, "status": status}


class Api:
    """Workloads of one cluster, its pods by job, and their logs."""

    def __init__(self, workloads: list[Any], pods: dict[str, list[Any]], *, denied: bool = False) -> None:
        self.server, self.workloads, self.pods, self.denied = "https://10.0.0.1", workloads, pods, denied

    def get(self, path: str, accept: str = "", **query: str) -> ApiResponse:
        assert accept
        if path.endswith("/workloads"):
            return ApiResponse(200, {"items": self.workloads})
        key, _, job = query.get("labelSelector", "").partition("=")
        return ApiResponse(200, {"items": self.pods.get(job, []) if key == _LABEL else []})

    def text(self, path: str, **query: str) -> str | ApiResponse:
        if self.denied:
            return ApiResponse(403, {"reason": "Forbidden", "message": "no"})
        name, kind = path.split("/")[-2], "last start" if query.get("previous") else "now"
        return f"0%\r50%\r{query['container']} of {name} {kind}\n"


@pytest.fixture
def apis(monkeypatch: pytest.MonkeyPatch) -> dict[str, Api]:
    found: dict[str, Api] = {}
    about = {name: getattr(EXPORTED, name) for name in ("cloud", "region", "owner", "cost_center")}
    manager = ManagerOutputs(
        stack="large", profile="large", cluster_name="large", kubeconfig=_kubeconfig("large"),
        clusters={"east": "large-east", "west": "large-west"}, connected=("east", "west"), pools=(),
        teams=(TEAM,), budget="b", **about,
    )  # fmt: skip

    def exported(stack: str, **_: object) -> tuple[Any, None]:
        if stack == "large":
            return manager, None
        config = {"kubeconfig": _kubeconfig(stack), "teams": (TEAM,), "stack": stack}
        return EXPORTED.model_copy(update=config), None

    @contextlib.contextmanager
    def connected(context: str | None, config: Path, **_: object) -> Iterator[Api]:
        assert context is None
        yield found[json.loads(config.read_text())["name"]]

    monkeypatch.setattr(scope, "with_cluster", exported)
    monkeypatch.setattr(kubectl, "connected", connected)
    return found


def _kubeconfig(name: str) -> str:
    return json.dumps({"name": name, "contexts": []})


def test_logs_come_from_the_cluster_that_runs_the_job(apis: dict[str, Api]) -> None:
    apis["large"] = Api([workload("train", "west"), workload("train", "east", ended=True)], {})
    pods = [pod("train-1", 1), pod("train-0", 0, init=True), pod("train-2", 2, crashed=True)]
    apis["large-west"] = Api([], {"train": pods})
    code, text = run("logs", "train", "-s", "large")
    assert code == 0
    assert text.splitlines()[-4:] == [
        "[train-0/plugin] plugin of train-0 now",
        "[train-0/main] main of train-0 now",
        "[train-1/main] main of train-1 now",
        "[train-2/main] main of train-2 last start",
    ]


@pytest.mark.parametrize(
    ("rows", "pods", "denied", "code"),
    [
        ([], {}, False, "job-not-found"),
        ([workload("train")], {}, False, "job-without-pods"),
        ([workload("train", "west", ended=True)], {}, False, "job-without-pods"),
        ([workload("train", "west")], {"train": [pod("train-0", 0)]}, True, "logs-not-readable"),
    ],
)
def test_a_job_without_logs_is_named_with_its_reason(
    apis: dict[str, Api], rows: list[Any], pods: dict[str, list[Any]], denied: bool, code: str
) -> None:
    apis["large"] = Api(rows, {})
    apis["large-west"] = Api([], pods, denied=denied)
    with pytest.raises(UserError) as caught:
        run("logs", "train", "-s", "large")
    assert [one.code for one in caught.value.problems] == [code]
