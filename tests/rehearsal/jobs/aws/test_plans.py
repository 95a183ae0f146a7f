"""Training plans: machines reserved in advance, in jobs of the emulated SageMaker."""

import importlib
from typing import Any

import pytest

from tests.rehearsal.jobs.aws.account import ACCOUNT, ENOUGH, REGION, ROLE, Account, request

ClientError: type[Exception] = importlib.import_module("botocore.exceptions").ClientError
ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan/december"
TYPE = "aws:sagemaker/trainingPlan:TrainingPlan"


def plan(account: Account, **changes: Any) -> None:
    plan = {"status": "Active", "instanceType": "ml.p5.48xlarge", "targetResources": ["training-job"]}
    account.add(TYPE, ARN, arn=ARN, **{**plan, **changes})


def wanted(**changes: Any) -> dict[str, Any]:
    machines = {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "VolumeSizeInGB": 10}
    return {"ResourceConfig": {**machines, "TrainingPlanArn": ARN, **changes}}


def refused(account: Account, **changes: Any) -> str:
    with pytest.raises(ClientError) as error:
        account.client("sagemaker").create_training_job(**request("job-1", "true", **wanted(**changes)))
    return str(error.value)


def test_a_job_runs_on_machines_of_an_active_plan(account: Account) -> None:
    plan(account)
    ended = account.run("job-1", "true", **wanted())
    assert ended["TrainingJobStatus"] == "Completed"
    assert ended["ResourceConfig"]["TrainingPlanArn"] == ARN
    jobs = account.client("sagemaker")
    (listed,) = jobs.list_training_jobs(TrainingPlanArnEquals=ARN)["TrainingJobSummaries"]
    assert listed["TrainingJobName"] == "job-1"
    assert jobs.list_training_jobs(TrainingPlanArnEquals=f"{ARN}-2")["TrainingJobSummaries"] == []


def test_a_job_waits_for_a_plan_that_has_not_begun(account: Account) -> None:
    plan(account, status="Scheduled")
    account.start("job-1", "true", **wanted())
    account.reached("job-1", {"Pending"})
    account.client("sagemaker").stop_training_job(TrainingJobName="job-1")
    assert account.ended("job-1")["TrainingJobStatus"] == "Stopped"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "Expired"}, "is Expired; it must be Scheduled or Active"),
        ({"instanceType": "ml.p4d.24xlarge"}, "reserves ml.p4d.24xlarge, not ml.p5.48xlarge"),
        ({"targetResources": ["hyperpod-cluster"]}, "not for training jobs"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(account: Account, changes: dict[str, Any], words: str) -> None:
    plan(account, **changes)
    assert words in refused(account)


def test_a_plan_is_described_as_it_was_seeded(account: Account) -> None:
    times = {"startTime": "2026-12-01T11:30:00Z", "endTime": "2026-12-08T11:30:00Z"}
    plan(account, totalInstanceCount=2, upfrontFee="16800.00", **times)
    found = account.client("sagemaker").describe_training_plan(TrainingPlanName="december")
    assert (found["Status"], found["UpfrontFee"], found["TotalInstanceCount"]) == ("Active", "16800.00", 2)
    (part,) = found["ReservedCapacitySummaries"]
    assert part["EndTime"] == found["EndTime"] and (found["EndTime"] - found["StartTime"]).days == 7
    with pytest.raises(ClientError, match="ResourceNotFound"):
        account.client("sagemaker").describe_training_plan(TrainingPlanName="january")


def test_a_plan_of_another_region_is_not_there(account: Account) -> None:
    plan(account)
    elsewhere = ARN.replace(REGION, "us-east-1")
    assert "ResourceNotFound" in refused(account, TrainingPlanArn=elsewhere)


def test_using_a_plan_needs_a_right_to_it(account: Account) -> None:
    plan(account)
    start = {"Effect": "Allow", "Action": ["sagemaker:CreateTrainingJob", "iam:PassRole"]}
    jobs = [f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/*", ROLE]
    account.role(ENOUGH, {**start, "Resource": jobs})
    script = "python3 /opt/ml/input/data/code/start.py"
    body = request("job-2", "true", **wanted())
    file = account.file("code-bucket", "code/start.py")
    file.parent.mkdir(parents=True)
    file.write_text(f"import boto3\nboto3.client('sagemaker').create_training_job(**{body!r})\n")
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://code-bucket/code/"}
    channel = [{"ChannelName": "code", "DataSource": {"S3DataSource": source}}]
    account.run("job-1", script, InputDataConfig=channel)
    said = "".join(
        one["message"]
        for one in account.client("logs").filter_log_events(logGroupName="/aws/sagemaker/TrainingJobs")[
            "events"
        ]
    )
    assert f"not authorized to perform: sagemaker:CreateTrainingJob on resource: {ARN}" in said
