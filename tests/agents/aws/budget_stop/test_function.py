"""The function against answers that the service models of botocore accept, request by request."""

import datetime
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from agents.aws.budget_stop import function
from components.aws.functions.function import packed

NOW = datetime.datetime(2026, 11, 26, 12, tzinfo=datetime.UTC)
ARN = "arn:aws:sagemaker:us-west-2:123456789012"
JOB = f"{ARN}:training-job/small-eve-lora-261126-115900"
SETTINGS = {
    "stack": "small",
    "account": "123456789012",
    "bucket": "artifacts",
    "topic": "arn:aws:sns:us-west-2:123456789012:people",
    "people": {"eve": "language"},
    "budgets": [
        {"name": "small-monthly", "scope": "stack", "value": "small", "over_budget": "warn"},
        {"name": "small-person-eve-monthly", "scope": "person", "value": "eve", "over_budget": "stop"},
    ],
}
EVE = {"Records": [{"Sns": {"Message": "Budget Name: small-person-eve-monthly\n"}}]}


class Services:
    """Clients whose requests and answers are held against the services' models."""

    def __init__(self) -> None:
        keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none", "region_name": "us-west-2"}
        names = ("sagemaker", "s3", "sns", "budgets")
        self.clients = {name: boto3.client(name, **keys) for name in names}
        self.stubs = {name: Stubber(client) for name, client in self.clients.items()}
        for stub in self.stubs.values():
            stub.activate()

    def says(self, service: str, operation: str, answer: Mapping[str, Any], **asked: Any) -> None:
        self.stubs[service].add_response(operation, dict(answer), asked or None)

    def spent(self, name: str, usd: str) -> None:
        budget = {
            "BudgetName": name,
            "BudgetType": "COST",
            "TimeUnit": "MONTHLY",
            "BudgetLimit": {"Amount": "500", "Unit": "USD"},
            "CalculatedSpend": {"ActualSpend": {"Amount": usd, "Unit": "USD"}},
        }
        asked = {"AccountId": "123456789012", "BudgetName": name}
        self.says("budgets", "describe_budget", {"Budget": budget}, **asked)

    def runs(self, tags: Mapping[str, str]) -> None:
        """One job of Eve's and nothing else."""
        self.searches()
        row = {
            "TrainingJobName": JOB.rpartition("/")[2],
            "TrainingJobArn": JOB,
            "CreationTime": NOW,
            "TrainingJobStatus": "InProgress",
        }
        asked = {"StatusEquals": "InProgress"}
        self.says("sagemaker", "list_training_jobs", {"TrainingJobSummaries": [row]}, **asked)
        marks = [{"Key": f"trainstack:{key}", "Value": value} for key, value in tags.items()]
        self.says("sagemaker", "list_tags", {"Tags": marks}, ResourceArn=JOB)
        self.says("sagemaker", "list_apps", {"Apps": []})
        self.says("sagemaker", "list_endpoints", {"Endpoints": []}, StatusEquals="InService")

    def searches(self, *arns: str) -> None:
        """Tuning jobs in progress."""
        rows = [
            {
                "HyperParameterTuningJobName": arn.rpartition("/")[2],
                "HyperParameterTuningJobArn": arn,
                "HyperParameterTuningJobStatus": "InProgress",
                "Strategy": "Bayesian",
                "CreationTime": NOW,
                "TrainingJobStatusCounters": {},
                "ObjectiveStatusCounters": {},
            }
            for arn in arns
        ]
        answer = {"HyperParameterTuningJobSummaries": rows}
        self.says("sagemaker", "list_hyper_parameter_tuning_jobs", answer, StatusEquals="InProgress")

    def records(self, *, known: bool = False) -> None:
        self.says("s3", "list_objects_v2", {"KeyCount": int(known)})
        if not known:
            body = {"Bucket": "artifacts", "Key": ANY, "Body": ANY, "ContentType": "application/json"}
            self.says("s3", "put_object", {}, **body)

    def act(self, event: Mapping[str, Any]) -> dict[str, Any]:
        return function.act(event, SETTINGS, self.clients, NOW)


@pytest.fixture
def services() -> Iterator[Services]:
    made = Services()
    yield made
    for stub in made.stubs.values():
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("tags", "stopped"), [({}, True), ({"team": "language"}, True), ({"team": "x"}, False)]
)
def test_a_job_without_a_team_counts_for_the_team_of_its_person(
    services: Services, tags: Mapping[str, str], stopped: bool
) -> None:
    name = "small-team-language-monthly"
    team = {"name": name, "scope": "team", "value": "language", "over_budget": "stop"}
    services.spent(name, "600.5")
    services.runs({"stack": "small", "person": "eve", **tags})
    if stopped:
        services.says("sagemaker", "stop_training_job", {}, TrainingJobName=JOB.rpartition("/")[2])
        services.records()
        services.says("sns", "publish", {}, TopicArn=SETTINGS["topic"], Subject=ANY, Message=ANY)
    event = {"Records": [{"Sns": {"Message": f"Budget Name: {name}\n"}}]}
    function.act(event, {**SETTINGS, "budgets": [team]}, services.clients, NOW)


def test_a_job_of_the_person_is_stopped_recorded_and_reported(services: Services) -> None:
    services.spent("small-person-eve-monthly", "600.5")
    services.runs({"stack": "small", "person": "eve"})
    services.says("sagemaker", "stop_training_job", {}, TrainingJobName=JOB.rpartition("/")[2])
    services.records()
    services.says("sns", "publish", {}, TopicArn=SETTINGS["topic"], Subject=ANY, Message=ANY)
    (record,) = services.act(EVE)["done"]
    assert (record["action"], record["outcome"], record["spent_usd"]) == ("stop", "stopped", 600.5)
    assert record["arn"] == JOB and record["schema_version"] == "trainstack.budget-stop/1"


def test_a_search_is_stopped_and_with_it_all_its_trials(services: Services) -> None:
    search = f"{ARN}:hyper-parameter-tuning-job/small-eve-6b085084"
    services.spent("small-person-eve-monthly", "600.5")
    services.searches(search)
    marks = [
        {"Key": f"trainstack:{key}", "Value": value} for key, value in (("stack", "small"), ("person", "eve"))
    ]
    services.says("sagemaker", "list_tags", {"Tags": marks}, ResourceArn=search)
    services.says("sagemaker", "list_training_jobs", {"TrainingJobSummaries": []}, StatusEquals="InProgress")
    services.says("sagemaker", "list_apps", {"Apps": []})
    services.says("sagemaker", "list_endpoints", {"Endpoints": []}, StatusEquals="InService")
    asked = {"HyperParameterTuningJobName": "small-eve-6b085084"}
    services.says("sagemaker", "stop_hyper_parameter_tuning_job", {}, **asked)
    services.records()
    services.says("sns", "publish", {}, TopicArn=SETTINGS["topic"], Subject=ANY, Message=ANY)
    (record,) = services.act(EVE)["done"]
    assert (record["kind"], record["outcome"]) == ("tuning-job", "stopped")


def test_below_the_limit_nothing_is_asked_about_what_runs(services: Services) -> None:
    services.spent("small-person-eve-monthly", "499")
    assert services.act(EVE) == {"over": [], "done": []}


def test_every_hour_all_budgets_are_asked_and_one_that_warns_leaves_everything_running(
    services: Services,
) -> None:
    services.spent("small-monthly", "501")
    services.spent("small-person-eve-monthly", "10")
    services.runs({"stack": "small", "person": "eve"})
    services.records()
    services.says("sns", "publish", {}, TopicArn=SETTINGS["topic"], Subject=ANY, Message=ANY)
    (record,) = services.act({"source": "aws.events"})["done"]
    assert (record["action"], record["outcome"]) == ("would stop", "left running")


def test_a_record_is_reported_once_a_day(services: Services) -> None:
    services.spent("small-monthly", "501")
    services.spent("small-person-eve-monthly", "10")
    services.runs({"stack": "small", "person": "eve"})
    services.records(known=True)
    assert len(services.act({})["done"]) == 1


def test_jobs_of_another_stack_are_left_alone(services: Services) -> None:
    services.spent("small-person-eve-monthly", "600")
    services.runs({"stack": "other", "person": "eve"})
    assert services.act(EVE)["done"] == []


def test_a_job_that_ended_meanwhile_is_no_error(services: Services) -> None:
    services.spent("small-person-eve-monthly", "600")
    services.runs({"stack": "small", "person": "eve"})
    services.stubs["sagemaker"].add_client_error("stop_training_job", "ValidationException")
    services.records()
    services.says("sns", "publish", {}, TopicArn=SETTINGS["topic"], Subject=ANY, Message=ANY)
    (record,) = services.act(EVE)["done"]
    assert record["outcome"] == "had ended"


def test_a_refused_stop_is_recorded_and_fails_the_call(services: Services) -> None:
    services.spent("small-person-eve-monthly", "600")
    services.runs({"stack": "small", "person": "eve"})
    services.stubs["sagemaker"].add_client_error("stop_training_job", "AccessDeniedException", "no")
    services.records()
    services.says("sns", "publish", {}, TopicArn=SETTINGS["topic"], Subject=ANY, Message=ANY)
    with pytest.raises(Exception, match="AccessDeniedException"):
        services.act(EVE)


def test_a_notebook_in_a_space_is_deleted_as_its_owners(services: Services) -> None:
    services.spent("small-person-eve-monthly", "600")
    services.searches()
    services.says("sagemaker", "list_training_jobs", {"TrainingJobSummaries": []}, StatusEquals="InProgress")
    place = {"DomainId": "d-abc", "SpaceName": "desk", "AppType": "JupyterLab", "AppName": "default"}
    services.says("sagemaker", "list_apps", {"Apps": [{**place, "Status": "InService"}]})
    services.says("sagemaker", "describe_app", {"AppArn": f"{ARN}:app/d-abc/desk"}, **place)
    owner = {"OwnershipSettings": {"OwnerUserProfileName": "eve"}}
    services.says("sagemaker", "describe_space", owner, DomainId="d-abc", SpaceName="desk")
    services.says("sagemaker", "list_tags", {"Tags": []}, ResourceArn=f"{ARN}:app/d-abc/desk")
    services.says("sagemaker", "describe_domain", {"DomainArn": f"{ARN}:domain/d-abc"}, DomainId="d-abc")
    marks = [{"Key": "trainstack:stack", "Value": "small"}]
    services.says("sagemaker", "list_tags", {"Tags": marks}, ResourceArn=f"{ARN}:domain/d-abc")
    services.says("sagemaker", "list_endpoints", {"Endpoints": []}, StatusEquals="InService")
    services.says("sagemaker", "delete_app", {}, **place)
    services.records()
    services.says("sns", "publish", {}, TopicArn=SETTINGS["topic"], Subject=ANY, Message=ANY)
    (record,) = services.act(EVE)["done"]
    assert (record["kind"], record["name"], record["outcome"]) == ("app", "eve/default", "stopped")


def test_the_package_holds_all_that_the_function_imports() -> None:
    """Imported from the archive alone, by an interpreter that sees nothing else of this tree."""
    import subprocess
    import sys
    import tempfile

    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for name, asset in packed("agents.aws.budget_stop", "agents.budget_stop").assets.items():
            made.writestr(name, asset.text)  # type: ignore[union-attr]
    with tempfile.NamedTemporaryFile(suffix=".zip") as file:
        file.write(archive.getvalue())
        file.flush()
        said = f"import sys; sys.path[:0] = [{file.name!r}]; "
        said += "from agents.aws.budget_stop import function as f; print(f.__file__, callable(f.handler))"
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", said], capture_output=True, text=True, check=False
        )
    assert done.stdout.strip() == f"{file.name}/agents/aws/budget_stop/function.py True", done.stderr
    assert json.dumps(SETTINGS)
