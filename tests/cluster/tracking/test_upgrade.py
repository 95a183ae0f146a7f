"""An upgrade of MLflow's tables with two servers in a Deployment, on a real API server."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agents.mlflow_server import schema, schema_job
from components.kubernetes.tracking.pod import labels
from rehearsal.controlplane.api import KubernetesApi
from tests.agents.mlflow_server.test_schema import newest, older, revisions
from tests.cluster.waiting import eventually

MANAGER = "pulumi-kubernetes"
# As `MlflowSchema` binds them.
RULES: list[Any] = [
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"], "resourceNames": ["mlflow"]},
    {
        "apiGroups": ["apps"],
        "resources": ["deployments/scale"],
        "verbs": ["patch"],
        "resourceNames": ["mlflow"],
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
]


@dataclass
class Cluster:
    """The Deployment of two servers, and the account of the Job."""

    api: KubernetesApi
    namespace: str
    servers: schema_job.Deployment
    seen: list[tuple[int, int]] = field(default_factory=list)
    """Replicas and pods at each snapshot."""

    def apply(self, image: str, replicas: int = 2) -> None:
        """As Pulumi does: an object that another manager changed would be a conflict."""
        container = {"name": "mlflow", "image": image}
        self.api.apply(
            {
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "mlflow", "namespace": self.namespace},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels()},
                    "template": {"metadata": {"labels": labels()}, "spec": {"containers": [container]}},
                },
            },
            manager=MANAGER,
            force=False,
        )  # fmt: skip

    def replicas(self) -> int:
        return int(self.api.get("apps/v1", "Deployment", "mlflow", self.namespace)["spec"]["replicas"])

    def pods(self) -> int:
        return len(self.api.list("v1", "Pod", self.namespace))

    def snapshot(self, name: str) -> str:
        self.seen.append((self.replicas(), self.pods()))
        return f"cluster-{name}"


@pytest.fixture
def cluster(api: KubernetesApi, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": "schema", "namespace": namespace}
    role = {"apiGroup": group, "kind": "Role", "name": "schema"}
    bodies: list[Any] = [
        {"apiVersion": "v1", "kind": "ServiceAccount"},
        {"apiVersion": f"{group}/v1", "kind": "Role", "rules": RULES},
        {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "roleRef": role, "subjects": [subject]},
    ]
    for body in bodies:
        api.create({**body, "metadata": {"name": "schema", "namespace": namespace}})
    (tmp_path / "ca.crt").write_bytes(api.access.authority.read_bytes())
    (tmp_path / "token").write_text(api.token(namespace, "schema"))
    host, port = api.access.server.removeprefix("https://").split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    made = Cluster(api, namespace, schema_job.Deployment(tmp_path, namespace, "mlflow", 2, limit_s=60))
    made.apply("registry.example/mlflow@sha256:old")
    eventually(lambda: made.pods() == 2, "two servers")
    return made


def test_no_old_server_is_left_at_the_snapshot_and_up_starts_the_new_ones(
    cluster: Cluster, tmp_path: Path
) -> None:
    database = older(tmp_path)
    schema.upgrade(database, cluster.servers, cluster.snapshot)
    assert cluster.seen == [(0, 0)] and cluster.replicas() == 0
    assert revisions(database) == newest(database)
    cluster.apply("registry.example/mlflow@sha256:new")
    eventually(lambda: cluster.pods() == 2, "two new servers")


class KilledError(BaseException):
    """An end that no program handles, as that by SIGKILL."""


def test_the_job_of_the_old_image_starts_servers_that_a_killed_one_stopped(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulumi sees no difference then: the Deployment of its state has the old image and two replicas."""
    database = older(tmp_path)

    def killed(_: str) -> str:
        raise KilledError

    with pytest.raises(KilledError):
        schema.upgrade(database, cluster.servers, killed)
    assert cluster.replicas() == 0
    known = {name: revisions[1:] for name, revisions in database.known().items()}
    monkeypatch.setattr(schema.Tables, "known", lambda _: known)
    schema.upgrade(database, cluster.servers, cluster.snapshot)
    assert cluster.replicas() == 2 and cluster.seen == []
    eventually(lambda: cluster.pods() == 2, "the old servers")


def test_old_servers_come_back_after_a_snapshot_that_failed(cluster: Cluster, tmp_path: Path) -> None:
    database = older(tmp_path)
    before = revisions(database)

    def failed(name: str) -> str:
        cluster.snapshot(name)
        raise OSError("quota of snapshots")

    with pytest.raises(schema.SchemaError, match="quota of snapshots"):
        schema.upgrade(database, cluster.servers, failed)
    assert cluster.seen == [(0, 0)] and cluster.replicas() == 2
    assert revisions(database) == before
    eventually(lambda: cluster.pods() == 2, "the old servers")
    cluster.apply("registry.example/mlflow@sha256:old", replicas=3)
    assert cluster.replicas() == 3


def test_without_a_change_and_with_a_newer_database_no_server_is_touched(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = older(tmp_path)
    schema.upgrade(database, schema.RunningServers())
    before = cluster.api.get("apps/v1", "Deployment", "mlflow", cluster.namespace)["metadata"]["generation"]
    schema.upgrade(database, cluster.servers, cluster.snapshot)
    known = {name: revisions[1:] for name, revisions in database.known().items()}
    monkeypatch.setattr(schema.Tables, "known", lambda _: known)
    with pytest.raises(schema.SchemaError):
        schema.upgrade(database, cluster.servers, cluster.snapshot)
    after = cluster.api.get("apps/v1", "Deployment", "mlflow", cluster.namespace)["metadata"]["generation"]
    assert after == before and cluster.seen == []


def test_a_pod_that_does_not_end_stops_the_upgrade_and_the_servers_come_back(
    cluster: Cluster, tmp_path: Path
) -> None:
    stays: Any = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "stays", "namespace": cluster.namespace, "labels": labels(),
            "finalizers": ["example.com/stays"],
        },
        "spec": {"containers": [{"name": "mlflow", "image": "i"}]},
    }  # fmt: skip
    cluster.api.create(stays)
    database = older(tmp_path)
    before = revisions(database)
    servers = schema_job.Deployment(cluster.servers.account, cluster.namespace, "mlflow", 2, limit_s=3)
    try:
        with pytest.raises(schema.SchemaError, match="stays"):
            schema.upgrade(database, servers, cluster.snapshot)
    finally:
        cluster.api.patch("v1", "Pod", "stays", {"metadata": {"finalizers": None}}, cluster.namespace)
    assert cluster.replicas() == 2 and cluster.seen == [] and revisions(database) == before
