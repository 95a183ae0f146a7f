"""Permissions of each class of jobs, tried by jobs in the emulated SageMaker and S3."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.aws.jobs.job_rights import RIGHTS
from components.aws.jobs.person_rights import PersonResources, Who, rights
from infra.job_roles import JobClass
from tests.rehearsal.jobs.aws.account import ACCOUNT, REGION, ROLE, Account

PLACE = PersonResources(
    region=REGION,
    account=ACCOUNT,
    partition="aws",
    stack="dev",
    checkpoints="arn:aws:s3:::out-bucket",
    datasets="arn:aws:s3:::data-bucket",
    artifacts="arn:aws:s3:::code-bucket",
    key=f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1",
    subnets=[],
    groups=[],
    domain="d-1",
    mlflow=f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:mlflow-app/app-1",
)
EVE = Who(
    name="eve",
    team="language",
    folder="language",
    job_machines=["ml.g6.xlarge"],
    notebook_machines=[],
    job_roles=[ROLE],
)
JOB = "dev-eve-probe-1"
DIGEST = "0a" * 32
PROBE = f"""
import json
import boto3
from botocore.exceptions import ClientError
s3, jobs = boto3.client("s3"), boto3.client("sagemaker")
put = lambda bucket, key: lambda: s3.put_object(Bucket=bucket, Key=key, Body=b"x")
get = lambda bucket, key: lambda: s3.get_object(Bucket=bucket, Key=key)
own, other, result = "teams/language/kept", "teams/vision/kept", "runs/{JOB}/done.json"
tries = dict(
    reads_data=get("data-bucket", own), reads_shared=get("data-bucket", "shared/kept"),
    reads_checkpoint=get("out-bucket", own), reads_model=get("code-bucket", "runs/dev-ada-x-1/kept"),
    writes_result=put("code-bucket", result), writes_checkpoint=put("out-bucket", "teams/language/new"),
    deletes_checkpoint=lambda: s3.delete_object(Bucket="out-bucket", Key=own),
    writes_data=put("data-bucket", own), writes_code=put("code-bucket", "code/eve/new"),
    reads_code_of_another=get("code-bucket", "code/ada/kept"),
    reads_pack_of_another=get("code-bucket", "code/ada/{DIGEST}/kept"),
    reads_earlier_code=get("code-bucket", "code/{DIGEST}/kept"),
    lists_earlier_code=lambda: s3.list_objects_v2(Bucket="code-bucket", Prefix="code/{DIGEST}/"),
    writes_earlier_code=put("code-bucket", "code/{DIGEST}/kept"),
    writes_result_of_another=put("code-bucket", "runs/dev-ada-x-1/kept"),
    reads_another_team=get("out-bucket", other),
    lists_jobs=lambda: jobs.list_training_jobs(),
    stops_a_job=lambda: jobs.stop_training_job(TrainingJobName="{JOB}"),
    starts_a_job=lambda: jobs.create_training_job(
        TrainingJobName="dev-eve-x-2", RoleArn="{ROLE}", AlgorithmSpecification=dict(
            TrainingImage="1.dkr.ecr.{REGION}.amazonaws.com/x", TrainingInputMode="File"),
        OutputDataConfig=dict(S3OutputPath="s3://code-bucket/runs"),
        ResourceConfig=dict(InstanceType="ml.g6.xlarge", InstanceCount=1, VolumeSizeInGB=10),
        StoppingCondition=dict(MaxRuntimeInSeconds=60)),
)
def may(do):
    try:
        do()
    except ClientError as error:
        assert error.response["Error"]["Code"] in ("AccessDenied", "AccessDeniedException"), error
        return False
    return True
found = [name for name, do in tries.items() if may(do)]
s3.put_object(Bucket="code-bucket", Key=result, Body=json.dumps(found).encode())
"""
READS = {
    *("reads_data", "reads_shared", "reads_checkpoint", "reads_model", "writes_result"),
    *("reads_earlier_code", "lists_earlier_code"),
}
MAY: dict[JobClass, set[str]] = {
    "evaluation": READS,
    "training": READS | {"writes_checkpoint", "deletes_checkpoint"},
}


def test_a_person_starts_jobs_on_the_machines_of_the_plans_of_the_stack() -> None:
    plan = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-plan/december"

    def creating(who: Who) -> list[dict[str, Any]]:
        statements = [one for text in rights(PLACE, who) for one in json.loads(text)["Statement"]]
        return [one for one in statements if "sagemaker:CreateTrainingJob" in one["Action"]]

    assert len(creating(EVE)) == 1
    job, capacity = creating(replace(EVE, training_plans=[plan]))
    assert job["Condition"] and "Condition" not in capacity
    assert capacity["Resource"] == [plan, f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:reserved-capacity/*"]


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    made = Account(tmp_path)
    made.add("aws:s3/bucket:Bucket", "data-bucket")
    folders = (
        "teams/language",
        "teams/vision",
        "shared",
        "runs/dev-ada-x-1",
        "code/ada",
        f"code/{DIGEST}",
        f"code/ada/{DIGEST}",
    )
    for bucket in ("data-bucket", "out-bucket", "code-bucket"):
        for folder in folders:
            file = made.file(bucket, f"{folder}/kept")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x")
    probe = made.file("code-bucket", "code/eve/1/probe.py")
    probe.parent.mkdir(parents=True)
    probe.write_text(PROBE)
    yield made
    made.services.stop()


@pytest.mark.parametrize("kind", list(MAY))
def test_a_job_may_do_what_its_class_is_for_and_nothing_else(account: Account, kind: JobClass) -> None:
    documents = [json.loads(text) for text in RIGHTS[kind](PLACE, EVE)]
    account.role(*(statement for one in documents for statement in one["Statement"]))
    assert probed(account) == MAY[kind]


def probed(account: Account) -> set[str]:
    """What a job with the role's rights may do, of what its script tries."""
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://code-bucket/code/eve/1/"}
    ended = account.run(
        JOB,
        "python3 /opt/ml/input/data/code/probe.py",
        InputDataConfig=[{"ChannelName": "code", "DataSource": {"S3DataSource": source}}],
        OutputDataConfig={"S3OutputPath": "s3://code-bucket/runs"},
    )
    assert ended["TrainingJobStatus"] == "Completed", ended.get("FailureReason")
    return set(json.loads(account.file("code-bucket", f"runs/{JOB}/done.json").read_text()))


TRAINER = f"arn:aws:iam::{ACCOUNT}:role/eve-training"
NOTEBOOK = replace(EVE, job_roles=[TRAINER], job_machines=["ml.g6.xlarge", "ml.g6.12xlarge"])
STARTS = f"""
import copy, json
import boto3
from botocore.exceptions import ClientError
jobs, s3 = boto3.client("sagemaker"), boto3.client("s3")
tags = [dict(Key="trainstack:" + key, Value=value) for key, value in dict(
    stack="dev", person="eve", team="language").items()]
common = dict(
    RoleArn="{TRAINER}", OutputDataConfig=dict(S3OutputPath="s3://code-bucket/runs"),
    ResourceConfig=dict(InstanceType="ml.g6.xlarge", InstanceCount=1, VolumeSizeInGB=10),
    StoppingCondition=dict(MaxRuntimeInSeconds=60),
    VpcConfig=dict(Subnets=["subnet-1"], SecurityGroupIds=["sg-1"]))
image = dict(TrainingImage="1.dkr.ecr.{REGION}.amazonaws.com/x", TrainingInputMode="File")
def job(name="dev-eve-x-1", tags=tags, **changes):
    jobs.create_training_job(
        TrainingJobName=name, AlgorithmSpecification=image, Tags=tags, **{{**common, **changes}})
def search(tags=tags):
    jobs.create_hyper_parameter_tuning_job(
        HyperParameterTuningJobName="dev-eve-0", Tags=tags, HyperParameterTuningJobConfig=dict(
            Strategy="Random", ResourceLimits=dict(MaxNumberOfTrainingJobs=1, MaxParallelTrainingJobs=1),
            HyperParameterTuningJobObjective=dict(Type="Minimize", MetricName="loss"),
            ParameterRanges=dict(CategoricalParameterRanges=[dict(Name="rank", Values=["4"])])),
        TrainingJobDefinition=dict(common, AlgorithmSpecification=dict(
            image, MetricDefinitions=[dict(Name="loss", Regex="loss (.*)")])))
machines = lambda kind: dict(common["ResourceConfig"], InstanceType=kind)
tries = dict(
    starts=job, starts_on_another=lambda: job("dev-eve-x-2", ResourceConfig=machines("ml.p5.48xlarge")),
    starts_elsewhere=lambda: job("dev-eve-x-3", VpcConfig=dict(common["VpcConfig"], Subnets=["subnet-2"])),
    starts_as_itself=lambda: job("dev-eve-x-4", RoleArn="{ROLE}"),
    starts_exempt=lambda: job("dev-eve-x-5", tags + [dict(Key="trainstack:budget-exempt", Value="x")]),
    starts_for_another=lambda: job("dev-ada-x-1"), starts_untagged=lambda: job("dev-eve-x-6", tags[:1]),
    starts_without_a_team=lambda: job("dev-eve-x-7", tags[:2]),
    starts_for_another_team=lambda: job(
        "dev-eve-x-8", [*tags[:2], dict(Key="trainstack:team", Value="vision")]),
    tags_a_job=lambda: jobs.add_tags(
        ResourceArn="arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/dev-eve-x-1", Tags=tags[:1]),
    writes_code=lambda: s3.put_object(Bucket="code-bucket", Key="code/eve/1/new", Body=b"x"),
    writes_code_of_another=lambda: s3.put_object(Bucket="code-bucket", Key="code/ada/kept", Body=b"x"),
    writes_result_of_another=lambda: s3.put_object(Bucket="code-bucket", Key="runs/dev-ada-x-1/y", Body=b"x"),
    searches_untagged=lambda: search(tags[:1]), searches=search,
    sees_search=lambda: jobs.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName="dev-eve-0"),
    stops_another=lambda: jobs.stop_training_job(TrainingJobName="dev-ada-y-1"),
)
"""


def test_a_notebook_starts_what_the_stack_is_for_and_nothing_else(account: Account) -> None:
    place = replace(PLACE, subnets=["subnet-1"], groups=["sg-1"])
    known = {"subnet-1": "subnet:Subnet", "subnet-2": "subnet:Subnet", "sg-1": "securityGroup:SecurityGroup"}
    for name, kind in known.items():
        account.add(f"aws:ec2/{kind}", name)
    account.role(arn=TRAINER)
    documents = [json.loads(text) for text in rights(place, NOTEBOOK)]
    account.role(*(statement for one in documents for statement in one["Statement"]))
    ending = PROBE[PROBE.index("def may(do)") :].replace("Key=result", f'Key="runs/{JOB}/done.json"')
    account.file("code-bucket", "code/eve/1/probe.py").write_text(STARTS + ending)
    assert probed(account) == {"starts", "searches", "sees_search", "writes_code"}
