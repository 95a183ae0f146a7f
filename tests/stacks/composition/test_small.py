"""A stack without a cluster, composed: what an expert of SageMaker looks for."""

import datetime
import functools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from infra import cost
from infra.catalog.aws import facts
from infra.outputs.jobs import JobOutputs
from tests.components.graph import Graph
from tests.stacks.composition.composed import composed, stack_spec
from trainstack.preflight.aws.needs import needs

PAIR = ("small", "aws")
EVE = {"trainstack:stack": "dev", "trainstack:person": "eve"}


@functools.cache
def made() -> Graph:
    return composed(PAIR)


@functools.cache
def kept() -> Graph:
    return composed(PAIR, lambda spec: spec["data"].update({"protect": True, "on_destroy": "keep"}))


def statements(graph: Graph, name: str) -> list[dict[str, Any]]:
    attached = {**graph.all("RolePolicy"), **graph.all("Policy")}
    policies = [json.loads(one["policy"]) for key, one in attached.items() if name in key]
    return [statement for policy in policies for statement in policy["Statement"]]


def allowing(action: str, name: str = "rights-eve") -> dict[str, Any]:
    (found,) = [
        one for one in statements(made(), name) if action in one["Action"] and one["Effect"] == "Allow"
    ]
    return found


def test_the_domain_is_closed_encrypted_and_reports_the_bill_whose_apps_are() -> None:
    domain = made().find("Domain")
    assert (domain["authMode"], domain["appNetworkAccessType"]) == ("IAM", "VpcOnly")
    assert domain["kmsKeyId"] and domain["tagPropagation"] == "ENABLED"
    assert domain["defaultUserSettings"]["securityGroups"]


def test_the_domains_own_role_may_do_nothing() -> None:
    assert statements(made(), "stranger") == []


@pytest.mark.parametrize("app", ["jupyterLabAppSettings", "codeEditorAppSettings"])
def test_idle_notebooks_stop_and_people_cannot_extend_the_time(app: str) -> None:
    profiles = [one["userSettings"] for one in made().all("UserProfile").values()]
    assert len(profiles) == 3
    for settings in (made().find("Domain")["defaultUserSettings"], *profiles):
        idle = settings[app]["appLifecycleManagement"]["idleSettings"]
        assert idle["lifecycleManagement"] == "ENABLED"
        assert idle["idleTimeoutInMinutes"] == idle["maxIdleTimeoutInMinutes"] == 60
        sizes = settings["spaceStorageSettings"]["defaultEbsStorageSettings"]
        assert sizes["maximumEbsVolumeSizeInGb"] == 20


def test_each_profile_runs_as_its_own_role_and_is_tagged() -> None:
    profiles = made().all("UserProfile")
    roles = {one["userSettings"]["executionRole"] for one in profiles.values()}
    assert len(roles) == len(profiles)
    assert profiles["dev-studio-eve"]["tags"] == {"trainstack:person": "eve", "trainstack:team": "language"}


def test_a_person_starts_jobs_of_her_own_on_the_machines_and_in_the_network_of_the_stack() -> None:
    create = allowing("sagemaker:CreateTrainingJob")
    jobs, _ = create["Resource"]  # and searches, whose names no role can match
    assert jobs.endswith(":training-job/dev-eve-*")
    condition = create["Condition"]
    tags = {**EVE, "trainstack:team": "language"}
    assert condition["StringEquals"] == {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    assert condition["ForAllValues:StringEquals"]["sagemaker:InstanceTypes"] == [
        "ml.g6.12xlarge",
        "ml.g6.xlarge",
    ]
    # Without these a request that names no network would pass.
    limited = {"sagemaker:InstanceTypes", "sagemaker:VpcSubnets", "sagemaker:VpcSecurityGroupIds"}
    assert condition["Null"] == dict.fromkeys(limited, "false")
    assert set(condition["ForAllValues:StringEquals"]) == limited


def test_a_person_hands_on_the_roles_of_her_own_jobs_and_only_to_sagemaker() -> None:
    (eve,) = [one for one in JobOutputs.model_validate(made().outputs).people if one.name == "eve"]
    assert set(eve.job_roles) == {"training", "evaluation"} and eve.role not in eve.job_roles.values()
    assert set(allowing("iam:PassRole")["Resource"]) == set(eve.job_roles.values())
    condition = allowing("iam:PassRole")["Condition"]
    assert condition == {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}


def test_a_person_reaches_the_folder_of_her_team_and_no_other() -> None:
    writes = allowing("s3:DeleteObject")["Resource"]
    assert all(one.endswith("/teams/language/*") for one in writes)
    everything = json.dumps(statements(made(), "rights-eve"))
    assert "teams/language" in everything and "teams/vision" not in everything


def test_no_role_can_exempt_a_job_from_a_budget() -> None:
    (deny,) = [one for one in statements(made(), "rights-ada") if one["Effect"] == "Deny"]
    assert "sagemaker:AddTags" in deny["Action"]
    assert deny["Condition"]["ForAnyValue:StringEquals"]["aws:TagKeys"] == ["trainstack:budget-exempt"]


def test_only_sagemaker_for_this_account_takes_a_persons_role() -> None:
    kinds = ("-person-", "-training-", "-evaluation-")
    roles = {name: one for name, one in made().all("Role").items() if any(kind in name for kind in kinds)}
    assert len(roles) == 9
    for one in roles.values():
        (trust,) = json.loads(one["assumeRolePolicy"])["Statement"]
        assert trust["Principal"] == {"Service": "sagemaker.amazonaws.com"}
        assert trust["Condition"]["StringEquals"]["aws:SourceAccount"]


def test_roles_of_jobs_alone_write_checkpoints_without_a_key() -> None:
    policies = [json.loads(one["policy"]) for one in made().all("BucketPolicy").values()]
    patterns = [
        one["Condition"]["ArnNotLike"]["aws:PrincipalArn"]
        for policy in policies
        for one in policy["Statement"]
        if "ArnNotLike" in one["Condition"]
    ]
    assert len(patterns) == 1
    starts = [one.rpartition("/")[2].removesuffix("*") for one in patterns[0]]
    roles = [name for name in made().all("Role") if f"{name}-".startswith(tuple(starts))]
    assert {name.split("-")[1] for name in roles} == {"training", "evaluation", "smoke"}


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("rights-training-eve-running", "/aws/sagemaker/TrainingJobs"),
        ("rights-evaluation-eve-running", "/aws/sagemaker/TrainingJobs"),
        ("smoke-running", "/aws/sagemaker/TrainingJobs"),
        ("rights-eve-running", "/aws/sagemaker/studio"),
    ],
)
def test_each_role_creates_the_one_log_group_of_the_account_that_it_logs_into(role: str, name: str) -> None:
    assert name not in [one["name"] for one in made().all("LogGroup").values()]
    (creates,) = [one for one in statements(made(), role) if "logs:CreateLogGroup" in one["Action"]]
    assert sorted(arn.partition(":log-group:")[2] for arn in creates["Resource"]) == [name, f"{name}:*"]


def test_a_function_without_variables_has_no_key_for_them() -> None:
    functions = made().all("Function").values()
    assert {bool(one.get("environment")) for one in functions} == {True, False}
    assert all(bool(one.get("environment")) == bool(one.get("kmsKeyArn")) for one in functions)


def tags_of(budget: Mapping[str, Any]) -> dict[str, str]:
    ands = budget["filterExpression"]["ands"]
    return {one["tags"]["key"]: one["tags"]["values"][0] for one in ands if "tags" in one}


def test_each_budget_counts_what_carries_its_tags_and_wakes_the_function_when_it_is_used_up() -> None:
    budgets = {one["name"]: one for one in made().all("Budget").values()}
    assert {name: tags_of(one) for name, one in budgets.items()} == {
        "dev-monthly": {"trainstack:stack": "dev"},
        "dev-team-vision-monthly": {"trainstack:stack": "dev", "trainstack:team": "vision"},
        "dev-person-eve-monthly": EVE,
    }
    for one in budgets.values():
        waking = [each for each in one["notifications"] if each.get("subscriberSnsTopicArns")]
        assert [(each["threshold"], each["notificationType"]) for each in waking] == [(100, "ACTUAL")]
        assert all(each["subscriberEmailAddresses"] for each in one["notifications"])


def stop() -> Mapping[str, Any]:
    return made().find("lambda/function:Function", "budgets-function")


def test_the_function_knows_every_budget_and_who_is_in_which_team() -> None:
    settings = json.loads(stop()["environment"]["variables"]["TRAINSTACK_BUDGETS"])
    assert [(one["scope"], one["over_budget"]) for one in settings["budgets"]] == [
        ("stack", "warn"),
        ("team", "stop"),
        ("person", "stop"),
    ]
    assert settings["people"] == {"ada": "vision", "ben": "vision", "eve": "language"}


def test_the_function_ends_only_what_carries_the_tag_of_the_stack() -> None:
    ends = allowing("sagemaker:StopTrainingJob", "budgets-function")
    assert ends["Condition"] == {"StringEquals": {"aws:ResourceTag/trainstack:stack": "dev"}}


def wildcards(graph: Graph) -> Iterator[str]:
    for name, one in graph.all("RolePolicy").items():
        for statement in json.loads(one["policy"])["Statement"]:
            if statement["Effect"] == "Allow" and any(
                re.search(r"^\*|:\*$", each) for each in statement["Action"]
            ):
                yield name


def test_no_role_may_do_everything_of_a_service() -> None:
    assert [*wildcards(made())] == []


def test_destroying_goes_from_spaces_to_profiles_to_the_domain_to_its_groups() -> None:
    graph = made()
    assert {f"UserProfile:dev-studio-{who}" for who in ("ada", "ben", "eve")} <= graph.waits_for(
        "Invocation:dev-cleaning-spaces"
    )
    assert "Invocation:dev-cleaning-groups" in graph.created_after("Domain:dev-studio-domain")
    assert "Vpc:dev-network-vpc" in graph.created_after("Invocation:dev-cleaning-groups")
    for one in graph.all("Invocation").values():
        assert one["lifecycleScope"] == "CRUD"


def test_data_that_is_kept_keeps_homes_and_a_protected_stack_its_domain() -> None:
    assert made().find("Domain")["retentionPolicy"]["homeEfsFileSystem"] == "Delete"
    assert kept().find("Domain")["retentionPolicy"]["homeEfsFileSystem"] == "Retain"
    assert kept().requests["Domain:dev-studio-domain"].protect
    assert not made().requests["Domain:dev-studio-domain"].protect


def test_what_is_exported_is_all_that_a_job_needs() -> None:
    exported = JobOutputs.model_validate(made().outputs)
    assert exported.service == "sagemaker" and exported.code_uri.endswith("/code")
    assert {one.name: one.usd_per_hour for one in exported.machines} == {"l4": 1.127, "l4x4": 5.752}
    assert [(one.name, one.folder) for one in exported.people] == [
        ("ada", "vision"),
        ("ben", "vision"),
        ("eve", "language"),
    ]
    assert len(exported.subnets) == 2 and len(exported.security_groups) == 1


def test_the_estimate_counts_what_the_graph_has() -> None:
    names = {item.name for item in cost.estimate(stack_spec(PAIR), datetime.date(2026, 11, 26)).items}
    cloud = made().cloud
    assert names >= {
        f"KMS keys ({len(cloud.of_type('aws:kms/key:Key'))})",
        f"NAT gateways ({len(cloud.of_type('aws:ec2/natGateway:NatGateway'))})",
        f"public addresses ({len(cloud.of_type('aws:ec2/eip:Eip'))})",
    }
    assert cloud.of_type("aws:secretsmanager/secret:Secret") == []


def test_the_preflight_knows_what_the_stack_takes_of_an_account() -> None:
    types = [asked.type for asked in made().cloud.asked if asked.type.startswith("aws:")]
    assert set(types) <= set(facts.permissions)
    wanted = {one.key: one.amount for one in needs(stack_spec(PAIR)).most}
    of_quota = {
        "vpcs": "ec2/vpc:Vpc",
        "internet_gateways": "ec2/internetGateway:InternetGateway",
        "elastic_ips": "ec2/eip:Eip",
        "nat_gateways_per_zone": "ec2/natGateway:NatGateway",
        "gateway_endpoints": "ec2/vpcEndpoint:VpcEndpoint",
        "sagemaker_domains": "sagemaker/domain:Domain",
        "sagemaker_user_profiles": "sagemaker/userProfile:UserProfile",
    }
    made_of = {key: types.count(f"aws:{token}") for key, token in of_quota.items()}
    assert {key: wanted[key] for key in of_quota} == made_of
