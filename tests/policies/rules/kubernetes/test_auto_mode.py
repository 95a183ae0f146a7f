"""Lifetime of EKS Auto Mode nodes against deadlines of jobs, and use of reservations."""

from typing import Any

import pytest

from policies.resource import Resource
from tests.policies.rules.kubernetes.test_pods import one, results

DAY = 24 * 3600
GPUS = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 8}}}]}
CLUSTER = Resource("aws:eks/cluster:Cluster", "c", "c", props={"computeConfig": {"enabled": True}})
RESUMES = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}


def training(days: int, *, pod: Any = None, **spec: Any) -> Resource:
    template = {"spec": {**GPUS, **(pod or {})}}
    return one("batch/v1:Job", spec={"activeDeadlineSeconds": days * DAY, "template": template, **spec})


def pool(life: str | None, group: str = "eks.amazonaws.com") -> Resource:
    nodes = {"nodeClassRef": {"group": group, "name": "gpu"}, **({"expireAfter": life} if life else {})}
    return one("karpenter.sh/v1:NodePool", "gpu", spec={"template": {"spec": nodes}})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([CLUSTER, training(13)], "pass"),
        ([CLUSTER, training(15)], "fail"),
        ([pool("480h"), training(19)], "pass"),
        ([pool("480h"), training(21)], "fail"),
        ([pool("72h30m"), training(3)], "pass"),
        ([pool("1000h"), training(22)], "fail"),
        ([pool("480h"), training(22, podFailurePolicy=RESUMES)], "pass"),
        ([pool("480h"), training(22, pod={"nodeSelector": {"eks.amazonaws.com/nodegroup": "a"}})], "pass"),
        ([pool("480h"), training(22, pod={"nodeSelector": {"karpenter.sh/nodepool": "gpu"}})], "fail"),
        ([pool("480h", "karpenter.k8s.aws"), training(22)], "not-applicable"),
        ([training(22)], "not-applicable"),
    ],
)
def test_a_job_ends_before_its_nodes(found: list[Resource], expected: str) -> None:
    assert results("MLS-GPU-10", *found) == {expected}


def test_a_pool_that_does_not_say_takes_reserved_capacity() -> None:
    reserved = {"capacityReservationSelectorTerms": [{"id": "cr-1"}]}
    nodes = one("eks.amazonaws.com/v1:NodeClass", "gpu", spec=reserved)
    assert results("MLS-GPU-11", nodes, pool(None)) == {"pass"}
    assert results("MLS-GPU-11", nodes) == {"fail"}
    assert results("MLS-GPU-11", one("eks.amazonaws.com/v1:NodeClass", "gpu", spec={})) == {"not-applicable"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["mlflow", "server", "--host", "0.0.0.0"], "fail"),
        (["mlflow", "server", "--host=0.0.0.0", "--app-name=basic-auth"], "pass"),
        (["mlflow", "server"], "pass"),
        (["sh", "-c", "exec mlflow ui -h 0.0.0.0"], "fail"),
        (["python", "-m", "mlflow", "server", "--host", "127.0.0.1"], "pass"),
        (["gunicorn", "--bind", "0.0.0.0:5000", "mlflow.server:app"], "fail"),
        (["uvicorn", "mlflow.server.fastapi_app:app", "--host", "0.0.0.0"], "fail"),
        (["mlflow", "run", "."], "not-applicable"),
        (["python", "serve.py"], "not-applicable"),
    ],
)
def test_mlflow_asks_who_calls(command: list[str], expected: str) -> None:
    pods = {"spec": {"containers": [{"name": "mlflow", "command": command}]}}
    assert results("MLS-TRK-07", one("apps/v1:Deployment", spec={"template": pods})) == {expected}


def test_mlflow_listens_where_its_environment_says() -> None:
    variables = [{"name": "MLFLOW_HOST", "value": "0.0.0.0"}]
    pods = {"spec": {"containers": [{"command": ["mlflow", "server"], "env": variables}]}}
    assert results("MLS-TRK-07", one("apps/v1:Deployment", spec={"template": pods})) == {"fail"}


@pytest.mark.parametrize(
    "pod",
    [
        {"containers": [{"envFrom": [{"secretRef": {"name": "mlflow-admin"}}]}]},
        {"containers": [{"env": [{"name": "MLFLOW_TRACKING_USERNAME", "value": "admin"}]}]},
        {"volumes": [{"name": "a", "secret": {"secretName": "mlflow-admin-login"}}]},
        {"volumes": [{"name": "a", "projected": {"sources": [{"secret": {"name": "mlflow-admin"}}]}}]},
    ],
)
def test_the_administrator_is_found_in_every_place(pod: Any) -> None:
    assert results("MLS-TRK-06", one("batch/v1:Job", spec={"template": {"spec": pod}})) == {"fail"}
