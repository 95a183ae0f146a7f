"""A login with fewer rights, or none: answers that the emulated service does not give its operator."""

from typing import Any

import pytest
from botocore.stub import Stubber

from infra.errors import UserError
from infra.jobs.aws.runs import SageMakerRuns
from infra.jobs.service import LostError
from tests.infra.jobs.samples import NOW
from tests.rehearsal.jobs.aws.account import boto3

DENIED = "User: arn:aws:sts::123456789012:assumed-role/x/ada is not authorized to perform: sagemaker:..."


class Answers:
    """Clients that give prepared answers, held against the services' models."""

    def __init__(self) -> None:
        self.stubs: dict[str, tuple[Any, Stubber]] = {}

    def __call__(self, service: str, region: str) -> Any:
        if service not in self.stubs:
            keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
            client = boto3.client(service, region_name=region, **keys)
            self.stubs[service] = (client, Stubber(client))
            self.stubs[service][1].activate()
        return self.stubs[service][0]

    def of(self, service: str) -> Stubber:
        self(service, "us-west-2")
        return self.stubs[service][1]


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def service(answers: Answers) -> SageMakerRuns:
    return SageMakerRuns(answers, "small-aws", "us-west-2")


def test_jobs_of_others_that_may_not_be_read_are_counted_and_left_out(
    answers: Answers, service: SageMakerRuns
) -> None:
    arn = "arn:aws:sagemaker:us-west-2:123456789012:training-job/"
    rows = [
        {"TrainingJobName": name, "TrainingJobArn": arn + name, "CreationTime": NOW,
         "TrainingJobStatus": "Completed"}
        for name in ("small-aws-bob-x", "another-stack-x")
    ]  # fmt: skip
    stub = answers.of("sagemaker")
    stub.add_client_error("list_hyper_parameter_tuning_jobs", "AccessDeniedException", DENIED)
    stub.add_response("list_training_jobs", {"TrainingJobSummaries": rows})
    for _ in rows:
        stub.add_client_error("describe_training_job", "AccessDeniedException", DENIED)
    assert list(service.jobs()) == [] and service.unseen == 1


@pytest.mark.parametrize("code", ["ExpiredToken", "UnrecognizedClientException"])
def test_a_login_that_is_over_is_reported_with_how_to_log_in(
    answers: Answers, service: SageMakerRuns, code: str
) -> None:
    answers.of("sts").add_client_error("get_caller_identity", code, "The security token is expired")
    with pytest.raises(UserError, match=r"login: .*\(aws sso login"):
        service.caller()


def test_a_right_that_is_missing_is_named(answers: Answers, service: SageMakerRuns) -> None:
    answers.of("sagemaker").add_client_error("stop_training_job", "AccessDeniedException", DENIED)
    answers.of("sagemaker").add_client_error("describe_training_job", "AccessDeniedException", DENIED)
    with pytest.raises(UserError, match=r"login: .*-denied\]"):
        service.stop("small-aws-bob-x")
    answers.of("s3").add_client_error("head_object", "403", "Forbidden", http_status_code=403)
    with pytest.raises(UserError, match=r"login: .*s3://code/x.*\[request-denied\]"):
        service.keep("s3://code/x", b"")


def test_a_bucket_that_is_gone_says_which_command_brings_it_back(
    answers: Answers, service: SageMakerRuns
) -> None:
    answers.of("s3").add_client_error("head_object", "404", "Not Found", http_status_code=404)
    answers.of("s3").add_client_error("put_object", "NoSuchBucket", "The specified bucket does not exist")
    with pytest.raises(UserError, match=r"\[bucket-missing\]"):
        service.keep("s3://code/x", b"")


@pytest.mark.parametrize(("code", "status"), [("ThrottlingException", 400), ("Whatever", 503)])
def test_a_service_that_is_not_well_is_no_refusal(
    answers: Answers, service: SageMakerRuns, code: str, status: int
) -> None:
    answers.of("sagemaker").add_client_error("describe_training_job", code, "x", http_status_code=status)
    with pytest.raises(LostError):
        service.job("small-aws-ada-x")


def test_an_account_without_any_job_has_no_lines_yet(answers: Answers, service: SageMakerRuns) -> None:
    answers.of("logs").add_client_error("describe_log_streams", "ResourceNotFoundException", "no group")
    assert service.logs("small-aws-ada-x").read() == []


def test_lines_that_were_read_before_the_connection_was_lost_are_not_lost(
    answers: Answers, service: SageMakerRuns
) -> None:
    streams = {"logStreams": [{"logStreamName": "run/algo-1-1"}, {"logStreamName": "run/algo-2-1"}]}
    page = {"events": [{"message": "one\n"}], "nextForwardToken": "f/1"}
    end = {"events": [], "nextForwardToken": "f/1"}
    logs, stub = service.logs("run"), answers.of("logs")
    stub.add_response("describe_log_streams", streams)
    stub.add_response("get_log_events", page)
    stub.add_response("get_log_events", end)
    stub.add_client_error("get_log_events", "ThrottlingException", "slow down")
    with pytest.raises(LostError):
        logs.read()
    stub.add_response("describe_log_streams", streams)
    for answer in (
        end,
        {"events": [{"message": "two"}], "nextForwardToken": "f/2"},
        {"events": [], "nextForwardToken": "f/2"},
    ):
        stub.add_response("get_log_events", answer)
    assert [(line.host, line.text) for line in logs.read()] == [("algo-1", "one"), ("algo-2", "two")]
