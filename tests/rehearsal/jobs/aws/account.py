"""An account with buckets and a role for jobs, and boto3 clients of operators and programs."""

import importlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rehearsal.core.fault_injection import FaultPlan
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane import folders
from rehearsal.jobs.services import EmulatedServices

# An untyped package: nothing of it is checked.
boto3: Any = importlib.import_module("boto3")

ACCOUNT, REGION = "210987654321", "eu-central-1"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/trainer"
BUCKETS = ("code-bucket", "out-bucket")
TRUST = {
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ]
}
ENOUGH = {
    "Effect": "Allow",
    "Action": ["s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
    "Resource": [arn for name in BUCKETS for arn in (f"arn:aws:s3:::{name}", f"arn:aws:s3:::{name}/*")],
}


class Account:
    """Adds resources to the state as the emulated AWS would, and calls the services as the operator."""

    def __init__(self, home: Path) -> None:
        self.home, self.state = home, State(home / "state.sqlite")
        self.services = EmulatedServices(self.state, home, FaultPlan(home / "faults.json"))
        for name in BUCKETS:
            self.add("aws:s3/bucket:Bucket", name)
        self.role(ENOUGH)

    def add(self, type: str, id: str, inputs: dict[str, Any] | None = None, **outputs: Any) -> Record:
        """A resource that exists."""
        record = self.state.insert(
            package="aws", type=type, scope=f"{ACCOUNT}/{REGION}", id=id, urn=id, name=id,
            inputs=inputs or {}, outputs=outputs,
        )  # fmt: skip
        self.state.issue(record, {id, *(str(value) for key, value in outputs.items() if key == "arn")})
        return record

    def role(self, *statements: dict[str, Any], arn: str = ROLE, trust: dict[str, Any] = TRUST) -> None:
        """A role with one inline policy, in place of the one with this ARN."""
        name = arn.rpartition("/")[2]
        for record in (*self.state.find(id=name), *self.state.find(id=f"{name}:inline")):
            self.state.remove(record)
        self.add("aws:iam/role:Role", name, {"assumeRolePolicy": json.dumps(trust)}, arn=arn, name=name)
        document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
        self.add("aws:iam/rolePolicy:RolePolicy", f"{name}:inline", {"role": name, "policy": document})

    def client(self, service: str, **more: Any) -> Any:
        """A client of boto3, with the operator's key."""
        return boto3.client(
            service, region_name=REGION, endpoint_url=self.services.aws.url, aws_access_key_id="rehearsal",
            aws_secret_access_key="rehearsal", **more,
        )  # fmt: skip

    def file(self, bucket: str, key: str) -> Path:
        """Path of an object on disk."""
        return folders.bucket(self.home, bucket) / key

    def faults(self, **content: Any) -> None:
        """Faults of the next jobs, and of one that runs, as `Rehearsal.set_faults` writes them."""
        new = self.home / "faults.new"
        new.write_text(json.dumps(content))
        new.replace(self.home / "faults.json")  # never read in part

    def start(self, name: str = "job-1", script: str = "true", **more: Any) -> str:
        """Start a job that runs a script with bash."""
        self.client("sagemaker").create_training_job(**request(name, script, **more))
        return name

    def ended(self, name: str, patience_s: float = 30.0) -> dict[str, Any]:
        """The description of a job once it is over."""
        return self.reached(name, {"Completed", "Failed", "Stopped"}, "TrainingJobStatus", patience_s)

    def reached(
        self, name: str, wanted: set[str], member: str = "SecondaryStatus", patience_s: float = 30.0
    ) -> dict[str, Any]:
        """The description of a job once it is in one of these states."""
        client, deadline = self.client("sagemaker"), time.monotonic() + patience_s
        while True:
            found: dict[str, Any] = client.describe_training_job(TrainingJobName=name)
            if found[member] in wanted:
                return found
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    def reached_search(self, name: str, trials: int, patience_s: float = 30.0) -> None:
        """Wait until a tuning job has so many trials."""
        client, deadline = self.client("sagemaker"), time.monotonic() + patience_s
        while True:
            found = client.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)
            if sum(found["TrainingJobStatusCounters"].values()) >= trials:
                return
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    def run(self, name: str = "job-1", script: str = "true", **more: Any) -> dict[str, Any]:
        """Run a job to its end."""
        return self.ended(self.start(name, script, **more))


def client(
    environment: Mapping[str, str], service: str, monkeypatch: pytest.MonkeyPatch, region: str = REGION
) -> Any:
    """A client of a program with this environment."""
    for name, value in environment.items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    return boto3.session.Session(region_name=region).client(service)


def request(name: str, script: str, **more: Any) -> dict[str, Any]:
    """A request of CreateTrainingJob whose container runs a script with bash."""
    return {
        "TrainingJobName": name,
        "RoleArn": ROLE,
        "AlgorithmSpecification": {
            "TrainingImage": f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/train@sha256:{'0' * 64}",
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["bash", "-c", 'eval "$START"'],
        },
        "Environment": {"START": script},
        "OutputDataConfig": {"S3OutputPath": "s3://out-bucket/runs"},
        "ResourceConfig": {"InstanceType": "ml.g6.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 60},
        **more,
    }
