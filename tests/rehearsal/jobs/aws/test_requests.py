"""Errors, lists and descriptions of the emulated SageMaker."""

import importlib
from datetime import timedelta
from typing import Any

import pytest

from rehearsal.dataplane.aws import shapes
from tests.rehearsal.jobs.aws.account import ACCOUNT, REGION, ROLE, Account, request

_errors: Any = importlib.import_module("botocore.exceptions")
_config: Any = importlib.import_module("botocore.config")
ClientError: type[Exception] = _errors.ClientError
# The client leaves shapes to the service, and does not ask again.
RAW = _config.Config(parameter_validation=False, retries={"total_max_attempts": 1})


def refused(account: Account, **changes: Any) -> str:
    """The service's error for a request with these changes."""
    wanted = {**request("job-1", "true"), **changes}
    with pytest.raises(ClientError) as error:
        account.client("sagemaker", config=RAW).create_training_job(**wanted)
    return str(error.value)


def algorithm(**changes: Any) -> dict[str, Any]:
    return {"AlgorithmSpecification": {**request("x", "")["AlgorithmSpecification"], **changes}}


def resources(**changes: Any) -> dict[str, Any]:
    return {"ResourceConfig": {**request("x", "")["ResourceConfig"], **changes}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"TrainingJobName": "under_score"},
            "'trainingJobName' failed to satisfy constraint: Member must satisfy reg",
        ),
        ({"TrainingJobName": "x" * 64}, "Member must have length less than or equal to 63"),
        (
            {"Environment": {"A": "x" * 513}},
            "Map value must satisfy constraint: [Member must have",
        ),
        (
            {"Environment": {"1A": "x"}},
            "Map key must satisfy constraint: [Member must satisfy",
        ),
        (
            {"Environment": {f"V{n}": "" for n in range(101)}},
            "Member must have length less than or equal to 100",
        ),
        (
            algorithm(ContainerEntrypoint=["bash", "-c", "x" * 257]),
            "Member must have length less than or equal to 256",
        ),
        (algorithm(ContainerArguments=["two\nlines"]), "Member must satisfy regular expression pattern: .*"),
        (algorithm(TrainingImage=None), "needs either TrainingImage or AlgorithmName"),
        (resources(InstanceType="ml.g99.xlarge"), "Member must satisfy enum value set"),
        (resources(InstanceCount=0), "ResourceConfig needs InstanceType and InstanceCount"),
        (
            resources(VolumeKmsKeyId="k"),
            "can't request a VolumeKmsKeyId when",
        ),
        (resources(VolumeSizeInGB=251), "can't request a VolumeSizeInGB greater"),
        ({"RoleArn": None}, "Value null at 'roleArn' failed to satisfy constraint: Member must not be null"),
        (
            {"RoleArn": f"arn:aws:iam::{ACCOUNT}:role/missing"},
            "ensure that the role exists",
        ),
        (
            {"VpcConfig": {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}},
            "subnets do not exist: subnet-1",
        ),
        (
            {"StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}},
            "It is only supported when EnableManagedSpotTraining",
        ),
        ({"EnableManagedSpotTraining": True}, "MaxWaitTimeInSeconds. It is required"),
        (
            {
                "EnableManagedSpotTraining": True,
                "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 59},
            },
            "must be equal to or greater than MaxRuntimeInSeconds",
        ),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 28 * 86400 + 1}}, "Invalid MaxRuntimeInSeconds"),
    ],
)
def test_what_is_not_accepted(account: Account, changes: dict[str, Any], words: str) -> None:
    said = refused(account, **changes)
    assert words in said
    assert "(ValidationException)" in said


def test_a_role_that_does_not_trust_the_service(account: Account) -> None:
    trust = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "*"}]}
    account.role(trust=trust)
    assert "Could not assume role" in refused(account)


def test_a_name_is_used_once(account: Account) -> None:
    account.run("job-1")
    said = refused(account)
    assert "(ResourceInUse)" in said and "Training job names must be unique" in said


def test_quotas_count_machines_by_market(account: Account) -> None:
    quotas = {"ml.g6.xlarge for training job usage": 1, "ml.g6.xlarge for spot training job usage": 0}
    account.faults(quotas=quotas)
    account.start("job-1", "sleep 30")
    said = refused(account, TrainingJobName="job-2")
    assert "(ResourceLimitExceeded)" in said
    assert (
        "'ml.g6.xlarge for training job usage' is 1 Instances, with current utilization of 1 Instances"
        in said
    )
    condition = {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}
    spot = {"EnableManagedSpotTraining": True, "StoppingCondition": condition}
    assert "spot training job usage' is 0 Instances" in refused(account, TrainingJobName="job-3", **spot)
    account.start("job-4", **resources(InstanceType="ml.g5.xlarge"))


@pytest.mark.parametrize(
    ("quota", "changes", "words"),
    [
        # The two forms of aws/sagemaker-python-sdk issue 4939 and aws/amazon-sagemaker-examples issue 1564.
        (
            "Longest run time for a training job",
            {"StoppingCondition": {"MaxRuntimeInSeconds": 432_001}},
            "The request delta of 432001 Seconds for 'Longest run time for a training job' is greater than",
        ),
        (
            "sagemaker_run_seconds",
            {"StoppingCondition": {"MaxRuntimeInSeconds": 432_001}},
            "service-limit of",
        ),
        (
            "Size of EBS volume for a training job instance",
            resources(InstanceType="ml.m5.xlarge", VolumeSizeInGB=432_001),
            "432001 GBs",
        ),
        (
            "Number of instances across all training jobs",
            resources(InstanceCount=432_001),
            "utilization of 0",
        ),
        (
            "Maximum number of instances per training job",
            resources(InstanceCount=432_001),
            "432001 Instances",
        ),
    ],
)
def test_limits_of_the_account_refuse_a_job(
    account: Account, quota: str, changes: dict[str, Any], words: str
) -> None:
    account.faults(quotas={quota: 432_000})
    said = refused(account, **changes)
    assert "(ResourceLimitExceeded)" in said and words in said


@pytest.mark.parametrize(
    ("kind", "code"), [("throttling", "ThrottlingException"), ("transient", "InternalFailure")]
)
def test_transient_faults_pass_on_a_retry(account: Account, kind: str, code: str) -> None:
    account.faults(faults=[{"on": "aws:sagemaker/trainingJob", "kind": kind, "times": 2}], run="1")
    assert f"({code})" in refused(account)
    assert f"({code})" in refused(account)
    assert account.run()["TrainingJobStatus"] == "Completed"


def test_a_quota_as_a_fault(account: Account) -> None:
    account.faults(faults=[{"on": "aws:sagemaker/trainingJob", "kind": "quota"}], run="1")
    assert "(ResourceLimitExceeded)" in refused(account)


def test_answers_have_the_shapes_of_the_model(account: Account) -> None:
    account.run(script="echo 1")
    client, logs = account.client("sagemaker"), account.client("logs")
    group = {"logGroupName": "/aws/sagemaker/TrainingJobs"}
    stream = logs.describe_log_streams(**group)["logStreams"][0]["logStreamName"]
    arn = client.describe_training_job(TrainingJobName="job-1")["TrainingJobArn"]
    answers = [
        ("sagemaker", "DescribeTrainingJob", client.describe_training_job(TrainingJobName="job-1")),
        ("sagemaker", "ListTrainingJobs", client.list_training_jobs()),
        ("sagemaker", "ListTags", client.list_tags(ResourceArn=arn)),
        ("sagemaker", "ListApps", client.list_apps()),
        ("sagemaker", "ListEndpoints", client.list_endpoints()),
        ("logs", "DescribeLogGroups", logs.describe_log_groups()),
        ("logs", "DescribeLogStreams", logs.describe_log_streams(**group)),
        ("logs", "GetLogEvents", logs.get_log_events(**group, logStreamName=stream)),
        ("logs", "FilterLogEvents", logs.filter_log_events(**group)),
    ]
    for service, operation, answer in answers:
        answer.pop("ResponseMetadata")
        shape = shapes.model(service).operation_model(operation).output_shape
        assert list(_wrong(shape, answer, operation)) == []


def _wrong(shape: Any, value: Any, path: str) -> Any:
    """Members that the model demands and the answer lacks, or that the model does not know."""
    if shape.type_name == "structure":
        yield from (f"{path}.{name} is missing" for name in shape.required_members if name not in value)
        yield from (f"{path}.{name} is unknown" for name in value if name not in shape.members)
        for name, inside in value.items():
            yield from _wrong(shape.members[name], inside, f"{path}.{name}")
    elif shape.type_name == "list":
        for index, inside in enumerate(value):
            yield from _wrong(shape.member, inside, f"{path}[{index}]")


def test_lists_are_filtered_sorted_and_paged(account: Account) -> None:
    for name in ("b-train", "a-train", "c-other"):
        account.run(name)
    client = account.client("sagemaker")

    def names(**asked: Any) -> list[str]:
        pages = client.get_paginator("list_training_jobs").paginate(**asked)
        return [row["TrainingJobName"] for page in pages for row in page["TrainingJobSummaries"]]

    assert names() == ["c-other", "a-train", "b-train"]
    assert names(SortBy="Name", SortOrder="Ascending") == ["a-train", "b-train", "c-other"]
    assert names(NameContains="train", SortOrder="Ascending", PaginationConfig={"PageSize": 1}) == [
        "b-train",
        "a-train",
    ]
    assert names(StatusEquals="InProgress") == []
    created = client.describe_training_job(TrainingJobName="a-train")["CreationTime"]
    # boto3 sends whole seconds.
    assert names(CreationTimeAfter=created + timedelta(seconds=30)) == []
    assert names(CreationTimeBefore=created + timedelta(seconds=30), NameContains="c-") == ["c-other"]
    token = client.list_training_jobs(MaxResults=1)["NextToken"]
    with pytest.raises(ClientError, match="pagination token"):
        client.list_training_jobs(MaxResults=1, NextToken=token, NameContains="other")


def test_tags(account: Account) -> None:
    account.start("job-1", Tags=[{"Key": "team", "Value": "vision"}])
    client = account.client("sagemaker")
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/job-1"
    client.add_tags(ResourceArn=arn, Tags=[{"Key": "person", "Value": "ada"}])
    account.ended("job-1")
    assert client.list_tags(ResourceArn=arn)["Tags"] == [
        {"Key": "team", "Value": "vision"},
        {"Key": "person", "Value": "ada"},
    ]


def test_jobs_that_do_not_exist(account: Account) -> None:
    with pytest.raises(ClientError, match="Requested resource not found"):
        account.client("sagemaker").describe_training_job(TrainingJobName="nothing")
    with pytest.raises(ClientError, match="CreateProcessingJob"):
        account.client("sagemaker", config=RAW).create_processing_job()


def test_apps_and_endpoints_of_programs_are_listed_and_deleted(account: Account) -> None:
    app = {"domainId": "d-1", "userProfileName": "ada", "appType": "JupyterLab", "appName": "default"}
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:app/d-1/ada/jupyterlab/default"
    account.add("aws:sagemaker/app:App", "app", app, **app, arn=arn, tagsAll={"team": "vision"})
    account.add("aws:sagemaker/endpoint:Endpoint", "e", {"name": "e"}, name="e", arn=f"{arn}-e")
    client = account.client("sagemaker")
    (row,) = client.list_apps(UserProfileNameEquals="ada")["Apps"]
    assert client.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "vision"}]
    assert client.list_apps(UserProfileNameEquals="bob")["Apps"] == []
    client.delete_app(DomainId="d-1", UserProfileName="ada", AppType="JupyterLab", AppName=row["AppName"])
    assert client.list_apps()["Apps"] == []
    assert [one["EndpointName"] for one in client.list_endpoints()["Endpoints"]] == ["e"]
    client.delete_endpoint(EndpointName="e")
    assert client.list_endpoints()["Endpoints"] == []
    assert ROLE
