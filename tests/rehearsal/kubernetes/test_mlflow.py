"""The programs of the tracking server, unchanged, in an emulated cluster."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.aws.mlflow_server import secret_store as aws_secrets
from agents.mlflow_server import schema_job, serve
from components.kubernetes.programs.program import config_data
from components.kubernetes.tracking.pod import program
from rehearsal.dataplane.aws.secret_store import SecretStore
from tests.rehearsal.kubernetes.harness import (
    ACCOUNT,
    ACCOUNT_KIND,
    DEPLOYMENT,
    JOB,
    SERVICE,
    Rehearsed,
    deployment,
    job,
    script_pod,
)
from tests.rehearsal.kubernetes.test_cluster import trusted_role

CLIENT = """
import os, mlflow
mlflow.set_tracking_uri(os.environ["MLFLOW_TRACKING_URI"])
with mlflow.start_run():
    mlflow.log_metric("loss", 0.5)
    mlflow.log_text("hello", "note.txt")
print(mlflow.search_runs(search_all_experiments=True, output_format="list")[0].data.metrics)
"""


def cloud(rehearsed: Rehearsed) -> tuple[str, str, str]:
    """Accounts, database and secrets of the server: names of the two secrets, and of the database's host."""
    prefix = f"arn:aws:secretsmanager:eu-central-1:{ACCOUNT}:secret:"
    admin, database = f"{prefix}admin-AbCdEf", f"{prefix}rds!cluster-1-XyZxyZ"
    arn = trusted_role(rehearsed, admin, database)
    association = {"clusterName": "dev", "namespace": "lab", "serviceAccount": "mlflow", "roleArn": arn}
    rehearsed.aws("aws:eks/podIdentityAssociation:PodIdentityAssociation", "a", association, {})
    rehearsed.aws("aws:secretsmanager/secret:Secret", admin, {}, {"arn": admin, "name": "admin"})
    rehearsed.state.put_document("secret", database, {"username": "root", "password": "p%@:/"})
    host = "dev.cluster-abc.eu-central-1.rds.amazonaws.com"
    rehearsed.aws("aws:rds/cluster:Cluster", "dev-db", {}, {"endpoint": host, "clusterIdentifier": "dev-db"})
    rehearsed.aws("aws:s3/bucket:Bucket", "artifacts", {}, {"bucket": "artifacts"})
    rehearsed.namespace()
    rehearsed.create(ACCOUNT_KIND, {"metadata": {"name": "mlflow", "namespace": "lab"}}, "sa")
    rehearsed.create(ACCOUNT_KIND, {"metadata": {"name": "schema", "namespace": "lab"}}, "schema-sa")
    rehearsed.aws(
        "aws:eks/podIdentityAssociation:PodIdentityAssociation",
        "b",
        association | {"serviceAccount": "schema"},
        {},
    )
    return admin, database, host


def tracking_pod(
    rehearsed: Rehearsed, module: str, account: str, environment: Mapping[str, str], **container: Any
) -> dict[str, Any]:
    variables = [{"name": name, "value": value} for name, value in environment.items()]
    runs = program(module, Path(aws_secrets.__file__).read_text())
    rehearsed.config_map(account, config_data(runs))
    pod = script_pod(account, container={"env": variables, **container}, serviceAccountName=account)
    pod["volumes"] = [
        {"name": "program", "configMap": {"name": account, "items": [
            {"key": f"{name}.py", "path": f"{name.replace('.', '/')}.py"} for name in runs.texts
        ]}},
        {"name": "tmp", "emptyDir": {}},
    ]  # fmt: skip
    (only,) = pod["containers"]
    only["command"], only["workingDir"] = ["python", "-m", module], "/opt/trainstack"
    only["volumeMounts"] = [
        {"name": "program", "mountPath": "/opt/trainstack"}, {"name": "tmp", "mountPath": "/tmp"},
    ]  # fmt: skip
    return pod


@pytest.mark.timeout(720)
def test_the_real_mlflow_server_and_a_client_job(rehearsed: Rehearsed) -> None:
    """The program of the tracking pods, unchanged: secrets, database, artifacts, names, all of it local."""
    admin, database, host = cloud(rehearsed)
    names = "mlflow.lab.svc.cluster.local:5000,mlflow.lab.svc:5000,localhost:*"
    env: dict[str, str] = {
        "HOST": "0.0.0.0", "PORT": "5000", "WORKERS": "1", "AWS_REGION": "eu-central-1", "HOME": "/tmp",
        "DATABASE_URI": f"postgresql+psycopg2://mlflow@{host}:5432/mlflow?sslmode=require",
        "DATABASE_SECRET": database, "ALLOWED_HOSTS": names,
        "ARTIFACTS_DESTINATION": "s3://artifacts/mlflow",
    }  # fmt: skip
    arguments = {
        "stage": "tables",
        "namespace": "lab", "deployment": "mlflow", "replicas": "1", "administrator": admin, "database": "",
        "seconds": "60", "account": "/tmp", "message": "/dev/termination-log",
    }  # fmt: skip
    words = [word for key, value in arguments.items() for word in (f"--{key}", value)]
    upgrades = tracking_pod(rehearsed, schema_job.__name__, "schema", env, args=words)
    rehearsed.create(JOB, job("schema", upgrades), "schema", timeout_s=240)
    serves = tracking_pod(
        rehearsed,
        serve.__name__,
        "mlflow",
        env,
        ports=[{"name": "http", "containerPort": 5000}],
        readinessProbe={"httpGet": {"path": "/health", "port": "http"}, "timeoutSeconds": 5},
    )
    rehearsed.create(DEPLOYMENT, deployment("mlflow", serves), "mlflow", timeout_s=240)
    service = {"selector": {"app": "mlflow"}, "ports": [{"port": 5000, "targetPort": "http"}]}
    rehearsed.create(SERVICE, {"metadata": {"name": "mlflow", "namespace": "lab"}, "spec": service}, "svc")
    password = json.loads(SecretStore(rehearsed.state).versions(admin)[0].value)["password"]
    login = {
        "MLFLOW_TRACKING_URI": "http://mlflow.lab.svc.cluster.local:5000",
        "MLFLOW_TRACKING_USERNAME": "admin", "MLFLOW_TRACKING_PASSWORD": password,
    }  # fmt: skip
    rehearsed.config_map("client", {"main.py": CLIENT})
    container = {"env": [{"name": name, "value": value} for name, value in login.items()]}
    rehearsed.create(JOB, job("client", script_pod("client", container=container)), "client", timeout_s=240)
    log = next((rehearsed.home / "logs" / "lab").glob("client-*.log")).read_text()
    assert "{'loss': 0.5}" in log
    notes = [
        Path(folder) / "note.txt"
        for folder, _, files in os.walk(rehearsed.home / "s3")
        if "note.txt" in files
    ]
    assert [note.read_text() for note in notes] == ["hello"]
    server = next((rehearsed.home / "logs" / "lab").glob("mlflow-*.log")).read_text()
    assert password not in server
