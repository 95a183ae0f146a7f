"""An MLflow App is a real MLflow server, which users reach by its ARN with real packages.

The packages are those of AWS's images: training images until PyTorch 2.10 have neither mlflow nor a plug-in,
those of 2.11 to 2.13 mlflow 3.15 and sagemaker-mlflow 0.2.0 (aws/deep-learning-containers of 2026-08-21,
docker/pytorch/2.11/cuda/uv.lock, pytorch/training/docker/2.7/py3/cu128/Dockerfile.gpu). Spaces have mlflow
2.22 and 0.2.0, or 3.15 and 0.5.0 (aws/sagemaker-distribution, v3.9.10 and v4.4.1).
"""

import hashlib
import importlib
import json
import os
import tarfile
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
import requests
from mlflow import MlflowClient

from infra.launchers.bundle import NAME as WRAPPER
from infra.launchers.bundle import of_jobs
from tests.rehearsal.jobs.aws.account import ACCOUNT, REGION, ROLE, Account
from tests.rehearsal.jobs.aws.clients import packages

auth: Any = importlib.import_module("botocore.auth")  # without type hints
AWSRequest: Any = importlib.import_module("botocore.awsrequest").AWSRequest
Credentials: Any = importlib.import_module("botocore.credentials").Credentials

ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:mlflow-app/app-ABCDEFGHIJKL"
CALLS = {"Effect": "Allow", "Action": "sagemaker:CallMlflowAppApi", "Resource": ARN}
FILES = {
    "Effect": "Allow",
    "Action": ["s3:ListBucket", "s3:GetObject", "s3:PutObject"],
    "Resource": [
        f"arn:aws:s3:::{name}"
        for name in ("code-bucket*", "out-bucket", "out-bucket/mlflow/*", "out-bucket/runs/*")
    ],
}
CODE = "/opt/ml/input/data/code"
WRAPPED = f"cp {CODE}/ranks.py {CODE}/{WRAPPER} /opt/ml/code; cd /opt/ml/code; python3 {WRAPPER} job"
# A script that knows nothing of clouds.
SCRIPT = """
import os, mlflow
mlflow.set_experiment(os.environ["TRAINING_JOB_NAME"] + "'s + runs")
with mlflow.start_run(run_name="outer") as outer:
    mlflow.log_param("lr", 3e-4)
    with mlflow.start_run(nested=True):
        mlflow.log_metric("loss", 0.5, step=1)
    mlflow.log_text("weights of a model", "notes/first file.txt")
client = mlflow.MlflowClient()
children = client.search_runs([outer.info.experiment_id], f"tags.mlflow.parentRunId = '{outer.info.run_id}'")
assert [run.data.metrics for run in children] == [{"loss": 0.5}]
name = f"words-{outer.info.run_id}"
client.create_registered_model(name)
version = client.create_model_version(name, f"{outer.info.artifact_uri}/notes", outer.info.run_id)
assert [one.version for one in client.search_model_versions(f"name = '{name}'")] == [version.version]
(file,) = mlflow.artifacts.list_artifacts(run_id=outer.info.run_id, artifact_path="notes")
assert mlflow.artifacts.load_text(f"{outer.info.artifact_uri}/{file.path}") == "weights of a model"
print(outer.info.artifact_uri)
"""


RANKS = b"""
import os, mlflow
if os.environ["RANK"] == "0":
    mlflow.log_metric("loss", 0.25, step=7)
"""


AUTOLOGGED = b"""
import mlflow, numpy
from sklearn.linear_model import Ridge
mlflow.autolog(log_models=False)
Ridge(alpha=0.5).fit(numpy.arange(8.0).reshape(4, 2), numpy.arange(4.0))
"""


def add_app(account: Account) -> Any:
    account.role(CALLS, FILES)
    inputs = {"artifactStoreUri": "s3://out-bucket/mlflow", "roleArn": ROLE}
    return account.add("aws:sagemaker/mlflowApp:MlflowApp", ARN, inputs, arn=ARN)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """An account with an app, whose jobs find their code in a channel, as those of `trainstack run`."""
    account = Account(tmp_path_factory.mktemp("home"))
    add_app(account)
    scripts = {"train.py": SCRIPT.encode(), "ranks.py": RANKS, "autologged.py": AUTOLOGGED}
    for name, content in {WRAPPER: of_jobs().content, **scripts}.items():
        file = account.file("code-bucket", f"run/{name}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    yield account
    account.services.stop()
    account.state.close()


CASES = {
    "an image until 2.10 with mlflow among the requirements": (),
    "images of 2.11 to 2.13": ("sagemaker-mlflow-0.2",),
    "a space of v4.4": ("sagemaker-mlflow-0.5",),
    "mlflow 2 among the requirements": ("mlflow-2",),
    "a space of v3.9": ("mlflow-2", "sagemaker-mlflow-0.2"),
}


def job(*names: str) -> dict[str, Any]:
    """A job whose path has the zip before site-packages, as the wrapper sets it; mlflow 2 hides mlflow 3."""
    folders = {name: str(packages.folder(name)) for name in names}
    old = [folders.pop("mlflow-2")] if "mlflow-2" in folders else []
    path = os.pathsep.join([*old, f"{CODE}/{WRAPPER}", *folders.values()])
    return request(START=f"python3 {CODE}/train.py", PYTHONPATH=path)


def request(**environment: str) -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://code-bucket/run/"}
    retries = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
    return {
        "Environment": {"MLFLOW_TRACKING_URI": ARN, **retries, **environment},
        "InputDataConfig": [{"ChannelName": "code", "DataSource": {"S3DataSource": source}}],
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
    }


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[pytest.mark.more] if "space" in name else []) for name in CASES]
)
def test_a_script_of_mlflow_records_into_the_app(used: Account, case: str) -> None:
    name = f"job-{list(CASES).index(case)}"
    found = used.ended(used.start(name, **job(*CASES[case])), 150)
    assert found["TrainingJobStatus"] == "Completed", found.get("FailureReason")
    experiment = MlflowClient(used.services.locate(ARN)).get_experiment_by_name(f"{name}'s + runs")
    assert experiment is not None
    folder = experiment.artifact_location.removeprefix("s3://out-bucket/")
    assert list(used.file("out-bucket", folder).rglob("notes/first file.txt"))


def test_of_two_machines_one_records(used: Account) -> None:
    whole = request(
        START=WRAPPED,
        TRAINSTACK_SCRIPT="ranks.py",
        TRAINSTACK_OWNER="ada",
        MLFLOW_EXPERIMENT_NAME="ranks",
    )
    machines = {"InstanceType": "ml.g6.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 10}
    found = used.ended(used.start("ranks", **whole, ResourceConfig=machines), 150)
    assert found["TrainingJobStatus"] == "Completed", found.get("FailureReason")
    client = MlflowClient(used.services.locate(ARN))
    experiment = client.get_experiment_by_name("ranks")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.status, run.data.metrics["loss"]) == ("FINISHED", 0.25)
    assert (run.data.tags["owner"], run.data.params["nodes"]) == ("ada", "2")
    assert run.info.artifact_uri.startswith("s3://out-bucket/mlflow/")


def test_a_script_that_only_switches_on_autolog_records_into_the_run_of_its_job(used: Account) -> None:
    whole = request(
        START=WRAPPED.replace("ranks.py", "autologged.py"),
        TRAINSTACK_SCRIPT="autologged.py",
        TRAINSTACK_OWNER="ada",
        MLFLOW_EXPERIMENT_NAME="autologged",
    )
    found = used.ended(used.start("autologged", **whole), 150)
    assert found["TrainingJobStatus"] == "Completed", found.get("FailureReason")
    client = MlflowClient(used.services.locate(ARN))
    experiment = client.get_experiment_by_name("autologged")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.status, run.data.params["alpha"], run.data.tags["owner"]) == ("FINISHED", "0.5", "ada")
    assert "training_r2_score" in run.data.metrics


def ask(
    account: Account, *, service: str = "sagemaker", secret: str = "rehearsal", app: str = ARN, **after: Any
) -> int:
    """Sign one request with botocore, change it afterwards, and return the status of the response."""
    body = json.dumps({"max_results": 1}).encode()
    headers = {"x-sm-mlflow-app-arn": app, "X-Amz-Content-SHA256": hashlib.sha256(body).hexdigest()}
    url = f"{account.services.aws.url}/api/2.0/mlflow/experiments/search?a=%20b"
    made = AWSRequest("POST", url, {**headers, "Content-Type": "application/json"}, body)
    auth.SigV4Auth(Credentials("rehearsal", secret), service, REGION).add_auth(made)
    sent = {**dict(made.headers.items()), **after.pop("headers", {})}
    return requests.post(**{"url": url, "data": body, "headers": sent, **after}, timeout=30).status_code


def test_requests_without_a_right_signature_are_refused(used: Account) -> None:
    assert ask(used) == 200
    assert ask(used, secret="another") == 403
    assert ask(used, data=b'{"max_results": 2}') == 403
    assert ask(used, data=b"{}", headers={"X-Amz-Content-SHA256": hashlib.sha256(b"{}").hexdigest()}) == 403
    assert ask(used, url=f"{used.services.aws.url}/api/2.0/mlflow/experiments/search?a=c") == 403
    assert ask(used, headers={"x-sm-mlflow-app-arn": ARN.replace("ABC", "XYZ")}) == 403
    assert ask(used, headers={"Authorization": ""}) == 403
    assert ask(used, service="sagemaker-mlflow") == 400
    assert ask(used, app=ARN.replace("ABC", "XYZ")) == 404


def test_a_job_whose_role_may_not_trains_without_a_record(used: Account) -> None:
    used.role(FILES)
    whole = request(
        START=WRAPPED,
        TRAINSTACK_SCRIPT="ranks.py",
        RANK="1",
    )
    assert used.ended(used.start("refused", **whole), 60)["TrainingJobStatus"] == "Completed"
    archive = used.file("out-bucket", "runs/refused/output/output.tar.gz")
    with tarfile.open(archive) as packed:
        run = packed.extractfile("run.json")
        assert run is not None
        found = json.load(run)["mlflow"]
    assert found["run_id"] is None and "status 403" in found["problems"][0]
    used.role(CALLS, FILES)


def test_the_server_of_a_deleted_app_ends(used: Account) -> None:
    (row,) = used.services.live_workloads()
    assert row["urls"] == [used.services.locate(ARN)]
    (record,) = used.state.issued(ARN)
    used.state.remove(record)
    deadline = time.monotonic() + 15
    while any(psutil.pid_exists(pid) for pid in row["pids"]):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert used.services.live_workloads() == [] and used.services.locate(ARN) is None
    assert ask(used) == 404
