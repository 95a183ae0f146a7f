"""A stack of a real engine: its buckets, role, MLflow App and function, used while and after it is made."""

import contextlib
import importlib
import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pulumi import automation

from rehearsal.client import Rehearsal
from tests.rehearsal.jobs.aws.account import client

aws: Any = importlib.import_module("pulumi_aws")


def gate(client: Any, role: str, bucket: str) -> str:
    """Run a job and wait for it, as something of a program may do while the engine works."""
    with contextlib.suppress(client.exceptions.ResourceInUse):
        client.create_training_job(
            TrainingJobName="gate",
            RoleArn=role,
            AlgorithmSpecification={
                "TrainingImage": "image",
                "TrainingInputMode": "File",
                "ContainerEntrypoint": ["bash", "-c", "echo accepted > /opt/ml/model/verdict"],
            },
            OutputDataConfig={"S3OutputPath": f"s3://{bucket}/runs"},
            ResourceConfig={"InstanceType": "ml.m7i.large", "InstanceCount": 2, "VolumeSizeInGB": 5},
            StoppingCondition={"MaxRuntimeInSeconds": 60},
        )
    while True:
        found = client.describe_training_job(TrainingJobName="gate")
        if found["TrainingJobStatus"] in ("Completed", "Failed", "Stopped"):
            return str(found.get("FailureReason") or found["TrainingJobStatus"])
        time.sleep(0.1)


def trusting(service: str) -> str:
    principal = {"Service": service}
    statement = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def program(sagemaker: Any) -> None:
    bucket = aws.s3.Bucket("artifacts", force_destroy=True)
    key = aws.kms.Key("key")
    rule = {
        "apply_server_side_encryption_by_default": {
            "sse_algorithm": "aws:kms",
            "kms_master_key_id": key.arn,
        }
    }
    aws.s3.BucketServerSideEncryptionConfiguration("encrypted", bucket=bucket.id, rules=[rule])
    role = aws.iam.Role("trainer", assume_role_policy=trusting("sagemaker.amazonaws.com"))
    document = pulumi.Output.json_dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Action": ["s3:ListBucket", "s3:PutObject"], "Resource": "*"},
                {"Effect": "Allow", "Action": "kms:GenerateDataKey", "Resource": key.arn},
            ],
        }
    )
    rights = aws.iam.RolePolicy("rights", role=role.id, policy=document)
    app = aws.sagemaker.MlflowApp(
        "runs", artifact_store_uri=bucket.id.apply(lambda name: f"s3://{name}/mlflow"), role_arn=role.arn
    )
    text = "def handler(event, context): return {'spent': event['spent']}"
    stopper = aws.iam.Role("stopper", assume_role_policy=trusting("lambda.amazonaws.com"))
    function = aws.lambda_.Function(
        "stop",
        role=stopper.arn,
        runtime="python3.12",
        handler="main.handler",
        code=pulumi.AssetArchive({"main.py": pulumi.StringAsset(text)}),
    )
    said = pulumi.Output.all(role.arn, bucket.id, rights.id).apply(
        lambda found: gate(sagemaker, found[0], found[1])
    )
    pulumi.export("gate", said)
    pulumi.export("bucket", bucket.id)
    pulumi.export("function", function.name)
    pulumi.export("app", app.arn)


def test_a_stack_is_used_while_and_after_it_is_made(
    rehearsal: Rehearsal,
    stack: Callable[[Callable[[], None]], automation.Stack],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    sagemaker = client(rehearsal.environment(), "sagemaker", monkeypatch, "us-east-1")
    made = stack(lambda: program(sagemaker))
    outputs = {name: value.value for name, value in made.up().outputs.items()}
    assert outputs["gate"] == "Completed"
    assert rehearsal.local_path(f"s3://{outputs['bucket']}/runs/gate/output/model.tar.gz").exists()
    assert outputs["app"].startswith("arn:aws:sagemaker:us-east-1:123456789012:mlflow-app/app-")
    with rehearsal.serving() as environment:
        function = client(environment, "lambda", monkeypatch, "us-east-1")
        answer = function.invoke(FunctionName=outputs["function"], Payload=json.dumps({"spent": 3}))
        assert json.loads(answer["Payload"].read()) == {"spent": 3}
    assert made.up().summary.resource_changes == {"same": 9}
    url = rehearsal.service_url(outputs["app"])
    with urllib.request.urlopen(f"{url}/health") as answer:
        assert answer.read() == b"OK"
    (server,) = rehearsal.status()["workloads"]
    assert server["kind"] == "MlflowApp"
    made.destroy()
    assert rehearsal.service_url(outputs["app"]) is None
    assert not list((rehearsal.home / "mlflow").iterdir())
    rehearsal.wait_until_idle()
