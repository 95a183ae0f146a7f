"""Quotas of SageMaker that refuse the gate, jobs, notebooks or the domain, each with the request to make."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from infra.catalog.aws.quotas import row_of
from infra.clouds.aws import login
from infra.errors import UserError
from infra.exit_codes import ExitCode
from infra.stackspec.aws.purchases import TrainingPlan
from tests.trainstack.preflight.aws.asking import ACCOUNT, ME, Answering, Refusal, asked
from tests.trainstack.preflight.aws.test_jobs import SMALL, account
from trainstack.cli.app import app
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws import JOB_CHECKS, quotas
from trainstack.preflight.aws.deployment import preflight_of
from trainstack.preflight.deployment import require_ready

GATE = "ml.g6.xlarge for training job usage"
SPOT = "ml.g6.xlarge for spot training job usage"
LARGE = "ml.g6.12xlarge for training job usage"
JUPYTER = "Studio JupyterLab Apps running on ml.t3.medium instances"
EDITOR = "Studio CodeEditor Apps running on ml.t3.medium instances"
# Names without codes in the catalog, with those of a public listing.
NAMED = {
    GATE: "L-56AE9D73",
    SPOT: "L-A886A53A",
    LARGE: "L-12345678",
    JUPYTER: "L-23456789",
    EDITOR: "L-FCEDEAC6",
}
PLAN = f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-plan/dec"
CODED = {
    "sagemaker_domains": 1.0,
    "sagemaker_user_profiles": 3.0,
    "sagemaker_spaces": 3.0,
    "sagemaker_apps": 3.0,
    "sagemaker_space_gb": 60.0,
    "sagemaker_training_instances": 4.0,
    "sagemaker_spot_training_instances": 4.0,
    "sagemaker_instances_per_job": 20.0,
    "sagemaker_instances_per_spot_job": 20.0,
    "sagemaker_run_seconds": 432_000.0,
}


def cloud(allowed: dict[str, float] | float | None = None, **more: Any) -> Answering:
    """An account with exactly what the shipped stack needs, changed by name or key; a number: all of them."""
    enough = {**CODED, GATE: 2.0, SPOT: 2.0, LARGE: 2.0, JUPYTER: 3.0, EDITOR: 1.0}
    if isinstance(allowed, float):
        enough = dict.fromkeys(enough, allowed)
    enough |= allowed if isinstance(allowed, dict) else {}
    by_code = {row_of(key).quota_code: value for key, value in enough.items()}
    rows = [
        {"QuotaName": name, "QuotaCode": code, "Value": enough[name]}
        for name, code in NAMED.items()
        if name in enough
    ]
    answers: dict[str, Any] = {
        "get_service_quota": lambda params: {"Quota": {"Value": by_code[params["QuotaCode"]]}},
        "list_aws_default_service_quotas": {"Quotas": [{**row, "Value": 0.0} for row in rows]},
        "list_service_quotas": {"Quotas": rows},
    }
    return Answering(**{**answers, **more})


def room(of: Answering, **layout: Any) -> dict[str, Answer]:
    found = asked(quotas.room_of_jobs, account(of, **layout))
    return {answer.check.removeprefix("job-quota "): answer for answer in found}


def short(found: dict[str, Answer]) -> set[str]:
    assert {answer.state for answer in found.values()} <= {State.READY, State.SHORT}
    return {key for key, answer in found.items() if answer.state is State.SHORT}


def test_an_account_with_exactly_enough_is_ready_and_every_quota_was_asked() -> None:
    found = room(cloud())
    assert short(found) == set()
    assert set(found) == {*CODED, *NAMED}


def test_the_gate_needs_the_quota_on_demand_of_a_machine_that_people_buy_as_spot() -> None:
    """The quotas are separate, 0 at first: aws/amazon-sagemaker-examples issue 263."""
    found = room(cloud({GATE: 0.0}))
    assert short(found) == {GATE}
    assert found[GATE].fix == (
        "aws service-quotas request-service-quota-increase --service-code sagemaker "
        "--quota-code L-56AE9D73 --desired-value 2 --region us-west-2"
    )


def test_a_quota_of_nothing_for_everything_names_all_at_once() -> None:
    found = room(cloud(0.0))
    assert short(found) == {*CODED, *NAMED}
    assert all("--desired-value" in answer.fix for answer in found.values())


@pytest.mark.parametrize(
    ("layout", "key", "wanted"),
    [
        ({"max_hours": 200.0}, "sagemaker_run_seconds", "--quota-code L-33A961FD --desired-value 720000"),
        ({"max_hours": 120.0}, "sagemaker_run_seconds", ""),
    ],
)
def test_a_run_longer_than_the_account_allows(layout: dict[str, Any], key: str, wanted: str) -> None:
    found = room(cloud(), **layout)
    assert short(found) == ({key} if wanted else set())
    assert wanted in found[key].fix


def job(name: str, machine: str, count: int, spot: bool = False, **resources: Any) -> dict[str, Any]:
    return {
        "TrainingJobName": name,
        "TrainingJobArn": f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-job/{name}",
        "EnableManagedSpotTraining": spot,
        "ResourceConfig": {"InstanceType": machine, "InstanceCount": count, "VolumeSizeInGB": 1, **resources},
        **dict.fromkeys(("TrainingJobStatus", "SecondaryStatus"), "InProgress"),
        "ModelArtifacts": {"S3ModelArtifacts": "s3://b/m"},
        "AlgorithmSpecification": {"TrainingInputMode": "File"},
        "StoppingCondition": {},
        "CreationTime": 0,
    }


def running(*jobs: dict[str, Any], own: str = "", warm: str = "") -> dict[str, Any]:
    """Answers about jobs; `own` is one of the stack, `warm` one whose machines are kept."""
    by_name = {one["TrainingJobName"]: one for one in jobs}
    summary = ("TrainingJobName", "TrainingJobArn", "CreationTime", "TrainingJobStatus")

    def listed(params: dict[str, Any]) -> dict[str, Any]:
        kept = "WarmPoolStatusEquals" in params
        names = [
            name for name in by_name if (name == warm) == kept and params.get("StatusEquals") != "Stopping"
        ]
        return {"TrainingJobSummaries": [{key: by_name[name][key] for key in summary} for name in names]}

    def tags(params: dict[str, Any]) -> dict[str, Any]:
        mine = params["ResourceArn"].endswith(f"/{own}")
        return {"Tags": [{"Key": "trainstack:stack", "Value": SMALL}] if mine else []}

    return {
        "list_training_jobs": listed,
        "describe_training_job": lambda params: by_name[params["TrainingJobName"]],
        "list_tags": tags,
    }


def test_what_others_run_counts_by_market_and_is_part_of_the_request() -> None:
    jobs = running(
        job("a", "ml.g6.xlarge", 2),
        job("b", "ml.g6.xlarge", 1, spot=True),
        job("c", "ml.p5.48xlarge", 8, TrainingPlanArn=PLAN),
        job("mine", "ml.g6.12xlarge", 2),
        own="mine",
    )
    found = room(cloud({"sagemaker_training_instances": 3.0}, **jobs))
    assert short(found) == {GATE, SPOT, "sagemaker_training_instances"}
    assert "--desired-value 4 " in found[GATE].fix and "--desired-value 3 " in found[SPOT].fix
    assert "--desired-value 4 " in found["sagemaker_training_instances"].fix


def test_machines_that_others_keep_warm_count() -> None:
    """Developer guide, train-warm-pools-resource-limits: all usage counts toward the training limit."""
    found = room(cloud(**running(job("kept", "ml.g6.xlarge", 1), warm="kept")))
    assert short(found) == {GATE}


def test_machines_of_a_training_plan_take_no_quota() -> None:
    plan = TrainingPlan(kind="training_plan", arn=PLAN)
    machines = tuple(
        one.model_copy(update={"machine": "ml.p5.48xlarge", "purchase": plan})
        for one in account(cloud()).layout.machines  # type: ignore[union-attr]
    )
    found = room(cloud(0.0), machines=machines)
    assert not any("training" in key for key in found) and "sagemaker_run_seconds" in found


def test_domains_profiles_and_notebooks_of_others_count() -> None:
    """A new account has few domains or none: aws/amazon-sagemaker-examples issue 1564."""
    domains = [
        {"DomainId": "d-1", "DomainName": "other", "DomainArn": "arn:aws:sagemaker:x:1:domain/d-1"},
        {"DomainId": "d-2", "DomainName": SMALL, "DomainArn": "arn:aws:sagemaker:x:1:domain/d-2"},
    ]
    apps = [
        {
            "DomainId": one,
            "AppType": "JupyterLab",
            "Status": status,
            "ResourceSpec": {"InstanceType": "ml.t3.medium"},
        }
        for one, status in (("d-1", "InService"), ("d-1", "Deleted"), ("d-2", "InService"))
    ]
    found = room(
        cloud(
            list_domains={"Domains": domains},
            list_user_profiles={"UserProfiles": [{"DomainId": "d-2"}]},
            list_apps={"Apps": apps},
        )
    )
    assert short(found) == {"sagemaker_domains", "sagemaker_apps", JUPYTER}
    assert "1 used" in found[JUPYTER].text and "--desired-value 4 " in found[JUPYTER].fix


def test_disks_of_spaces_count() -> None:
    settings = {"SpaceStorageSettings": {"EbsStorageSettings": {"EbsVolumeSizeInGb": 5}}}
    space = {"DomainId": "d-1", "SpaceName": "one", "SpaceSettingsSummary": settings}
    found = room(cloud(list_spaces={"Spaces": [space]}))
    assert short(found) == {"sagemaker_spaces", "sagemaker_space_gb"}
    assert "--desired-value 65 " in found["sagemaker_space_gb"].fix


def test_a_quota_that_the_account_does_not_list_is_unknown() -> None:
    of = cloud()
    of.answers["list_service_quotas"] = of.answers["list_aws_default_service_quotas"] = {"Quotas": []}
    found = room(of)
    assert {key for key, answer in found.items() if answer.state is State.UNKNOWN} == set(NAMED)


@pytest.mark.parametrize(
    ("denied", "unknown"),
    [
        ("get_service_quota", {*CODED}),
        ("list_service_quotas", {*NAMED}),
        ("list_domains", {"sagemaker_domains"}),
        ("describe_training_job", {GATE, SPOT, LARGE, *(key for key in CODED if "training_i" in key)}),
    ],
)
def test_what_may_not_be_asked_is_unknown_and_the_rest_is_checked(denied: str, unknown: set[str]) -> None:
    of = cloud(**running(job("a", "ml.c5.xlarge", 0)))
    of.answers[denied] = Refusal("AccessDeniedException")
    found = room(of)
    assert {key for key, answer in found.items() if answer.state is State.UNKNOWN} == unknown
    assert {answer.state for key, answer in found.items() if key not in unknown} == {State.READY}


@pytest.mark.parametrize(
    ("value", "code", "state"), [(0.0, ExitCode.FAILED, "short"), (None, ExitCode.USAGE, "unknown")]
)
def test_the_command_names_all_quotas_of_a_new_account_at_once(
    value: float | None, code: int, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quota of 0 for everything; None: quotas may not be read, which is never a pass."""
    of = cloud(0.0, get_caller_identity={"Account": ACCOUNT, "Arn": ME, "UserId": "x"})
    of.answers["get_service_quota"] = {"Quota": {"Value": 0.0}}
    if value is None:
        names = ("get_service_quota", "list_service_quotas", "list_aws_default_service_quotas")
        of.answers |= dict.fromkeys(names, Refusal("AccessDeniedException"))
    monkeypatch.setattr(login, "clients", lambda: of)
    skipped = [w for name in JOB_CHECKS if not name.endswith("quotas") for w in ("--skip", name)]
    done = CliRunner().invoke(app, ["preflight", "-s", SMALL, *skipped, "--format", "json"])
    assert done.exit_code == code, done.output
    answers = {row["check"]: row for row in json.loads(done.stdout)["answers"]}
    assert answers.pop("identity")["state"] == "ready"
    assert {row["state"] for row in answers.values()} == {state}
    network = {"vpcs", "internet_gateways", "elastic_ips", "nat_gateways_per_zone", "gateway_endpoints"}
    assert {name.split(" ", 1)[1] for name in answers} == {*CODED, *NAMED, *network, "efs_file_systems"}
    assert all(row["fix"] for row in answers.values())
    assert not [name for name, _ in of.asked if not name.startswith(("get_", "list_", "describe_"))]


@pytest.mark.parametrize(
    ("allowed", "stopped"),
    [
        ({GATE: 0.0, "sagemaker_domains": 0.0}, {f"quota {GATE}", "quota sagemaker_domains"}),
        ({LARGE: 0.0, SPOT: 0.0, JUPYTER: 0.0}, set()),  # people can use the stack otherwise
    ],
)
def test_up_does_not_begin_where_its_gate_could_never_run(
    allowed: dict[str, float], stopped: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    of = cloud(allowed, get_caller_identity={"Account": ACCOUNT, "Arn": ME, "UserId": "x"})
    by_code = of.answers["get_service_quota"]
    of.answers["get_service_quota"] = lambda params: (
        by_code(params) if params["ServiceCode"] == "sagemaker" else {"Quota": {"Value": 5.0}}
    )
    monkeypatch.setattr(login, "clients", lambda: of)
    try:
        require_ready(preflight_of(account(of).spec))
    except UserError as error:
        assert {problem.path for problem in error.problems} == stopped
        assert all("--desired-value" in problem.fix for problem in error.problems)
    else:
        assert not stopped


def test_what_is_left_is_saved_for_a_rehearsal() -> None:
    of = cloud(**running(job("a", "ml.g6.xlarge", 1)), describe_addresses={"Addresses": []})
    of.answers["get_service_quota"] = {"Quota": {"Value": 7.0}}
    left = quotas.left(account(of))
    assert left[GATE] == 1 and left["sagemaker_training_instances"] == 6 and left["elastic_ips"] == 7
