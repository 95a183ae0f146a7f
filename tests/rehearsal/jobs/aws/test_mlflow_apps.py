"""An MLflow App is a real MLflow server that jobs and users find by its ARN."""

import json
import time
import urllib.request
from typing import Any

import psutil

from tests.rehearsal.jobs.aws.account import ACCOUNT, REGION, Account

ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:mlflow-app/app-ABCDEFGHIJKL"
_PROGRAM = (
    "import json, os, urllib.request; "
    "body = json.dumps({'name': 'team'}).encode(); "
    "url = os.environ['MLFLOW_TRACKING_URI'] + '/api/2.0/mlflow/experiments/create'; "
    "asked = urllib.request.Request(url, body, {'Content-Type': 'application/json'}); "
    "print(urllib.request.urlopen(asked).status)"
)


def test_a_job_records_into_the_app_of_its_stack(account: Account) -> None:
    app = account.add(
        "aws:sagemaker/mlflowApp:MlflowApp", ARN, {"artifactStoreUri": "s3://out-bucket/mlflow"}, arn=ARN
    )
    assert account.services.locate(ARN.replace("ABC", "XYZ")) is None
    job: dict[str, Any] = {"Environment": {"START": f'python3 -c "{_PROGRAM}"', "MLFLOW_TRACKING_URI": ARN}}
    # A server takes its time to start, above all on a busy machine.
    found = account.ended(account.start(**{**job, "StoppingCondition": {"MaxRuntimeInSeconds": 600}}), 150)
    assert found["TrainingJobStatus"] == "Completed", found
    (row,) = account.services.live_workloads()
    url = account.services.locate(ARN)
    assert row["urls"] == [url]
    asked = f"{url}/api/2.0/mlflow/experiments/get-by-name?experiment_name=team"
    with urllib.request.urlopen(asked) as answer:
        experiment = json.loads(answer.read())["experiment"]
    assert experiment["artifact_location"].startswith("mlflow-artifacts:/")
    account.state.remove(app)
    deadline = time.monotonic() + 15
    while any(psutil.pid_exists(pid) for pid in row["pids"]):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert account.services.live_workloads() == []
