"""A node whose proxy sends requests to an MLflow App of an account: a real server of MLflow."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from rehearsal.dataplane.aws.server import CREDENTIALS_PATH
from rehearsal.service_ports import MLFLOW
from rehearsal.slurm.cluster import free_ports
from tests.rehearsal.jobs.aws.account import ROLE, Account
from tests.rehearsal.jobs.aws.test_mlflow_apps import ARN, CALLS

FILES = {
    "Effect": "Allow",
    "Action": ["s3:ListBucket", "s3:GetObject", "s3:PutObject"],
    "Resource": ["arn:aws:s3:::out-bucket", "arn:aws:s3:::out-bucket/mlflow/*"],
}


@dataclass(frozen=True)
class Node:
    """Address of the proxy, a folder of jobs, and the account behind it."""

    url: str
    folder: Path
    account: Account

    def get(self, path: str) -> Any:
        """The response to a request of MLflow's API."""
        return requests.get(f"{self.url}/api/2.0/mlflow/{path}", timeout=300).json()


def node(home: Path, folder: Path) -> Iterator[Node]:
    """A node whose proxy answers, until it is ended."""
    account = Account(home)
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole"}
    services = [{**trust, "Principal": {"Service": f"{name}.amazonaws.com"}} for name in ("ec2", "sagemaker")]
    account.role(CALLS, FILES, trust={"Statement": services})
    inputs = {"artifactStoreUri": "s3://out-bucket/mlflow", "roleArn": ROLE}
    account.add("aws:sagemaker/mlflowApp:MlflowApp", ARN, inputs, arn=ARN)
    url = account.services.aws.url
    token = account.services.aws._plane.identities.role_token(ROLE, "i-1", "ec2.amazonaws.com", folder)
    port = free_ports(1)
    settings = {
        "PORT": str(port),
        "MLFLOW_APP": ARN,
        "ARTIFACTS": "s3://out-bucket/mlflow",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": url + CREDENTIALS_PATH,
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token),
        "AWS_ENDPOINT_URL_S3": url,
        MLFLOW: url,
    }
    command = [sys.executable, "-m", "agents.slurm.mlflow_proxy"]
    proxy = subprocess.Popen(command, env={**os.environ, **settings})
    try:
        # MLflow itself needs its time to start.
        account.services.locate(ARN)
        while not _answers(f"http://127.0.0.1:{port}"):
            assert proxy.poll() is None
        yield Node(f"http://127.0.0.1:{port}", folder, account)
    finally:
        proxy.kill()
        proxy.wait()
        account.services.stop()
        account.state.close()


def _answers(address: str) -> bool:
    try:
        return requests.get(f"{address}/health", timeout=60).status_code == 200
    except requests.RequestException:
        return False
