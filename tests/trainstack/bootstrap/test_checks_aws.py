"""Preflight checks of the setup of an AWS account, against the answers of its services."""

import json
import shlex
from dataclasses import replace
from typing import Any

import boto3
import pytest

from infra.stackspec import load_file
from tests.trainstack.preflight.aws.asking import ACCOUNT, ME, Answering, Refusal, account
from trainstack.bootstrap.aws.checks import BUCKET, CONTACT, TRUST, checks_of
from trainstack.bootstrap.aws.trusts import federated
from trainstack.bootstrap.setup import ClientSetup
from trainstack.bootstrap.trust import GITHUB, GITLAB, Pipeline
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import answered

STACK, NAME = "dev-aws", f"trainstack-acme-{ACCOUNT}"
IDS = Pipeline(GITHUB, "acme@123/stacks@456")
GIT, LAB = Pipeline(GITHUB, "acme/stacks"), Pipeline(GITLAB, "acme/ml/stacks")
ROLE = "arn:aws:iam::111122223333:role/deployment"
AGENCY = {
    "Effect": "Allow", "Principal": {"AWS": ROLE}, "Action": "sts:AssumeRole",
    "Condition": {"StringEquals": {"sts:ExternalId": "acme-2041-77"}},
}  # fmt: skip
KMS = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "k"}
PUBLIC = dict.fromkeys(
    ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
)
MADE: dict[str, Any] = {
    "head_bucket": {"BucketRegion": "us-east-1"},
    "get_bucket_encryption": {
        "ServerSideEncryptionConfiguration": {"Rules": [{"ApplyServerSideEncryptionByDefault": KMS}]}
    },
    "get_bucket_versioning": {"Status": "Enabled"},
    "get_public_access_block": {"PublicAccessBlockConfiguration": PUBLIC},
    "get_caller_identity": {"Account": ACCOUNT, "Arn": ME, "UserId": "x"},
}


def allowed(params: dict[str, Any]) -> dict[str, Any]:
    (resource,) = params["ResourceArns"]
    assert resource.startswith(f"arn:aws:s3:::{NAME}/.pulumi/locks/organization/acme/{STACK}/")
    return {
        "EvaluationResults": [
            {"EvalActionName": one, "EvalDecision": "allowed"} for one in params["ActionNames"]
        ]
    }


def denied(params: dict[str, Any]) -> dict[str, Any]:
    rows = [{"EvalActionName": one, "EvalDecision": "implicitDeny"} for one in params["ActionNames"]]
    return {"EvaluationResults": rows}


def asked(
    check: str,
    pipeline: Pipeline | None = None,
    backend: str = "",
    form_known: bool = True,
    rules: str = "branch_policy\nrequired_reviewers",
    **answers: Any,
) -> tuple[list[Answer], Answering]:
    cloud = Answering(**{**MADE, "simulate_principal_policy": allowed, **answers})
    made = checks_of(ClientSetup("acme", pipeline, backend, form_known, asked=lambda _: rules))[check]
    return list(answered(check, made, account(cloud))), cloud


def one(check: str, pipeline: Pipeline | None = None, **answers: Any) -> Answer:
    (found,), _ = asked(check, pipeline, **answers)
    return found


def role(*statements: Any) -> dict[str, Any]:
    made = {
        "Path": "/",
        "RoleName": "r",
        "RoleId": "A" * 16,
        "Arn": ROLE,
        "CreateDate": "2026-01-01T00:00:00Z",
    }
    return {"Role": {**made, "AssumeRolePolicyDocument": json.dumps({"Statement": [*statements]})}}


def test_the_bucket_that_bootstrap_makes_is_ready() -> None:
    assert one(BUCKET).state is State.READY


@pytest.mark.parametrize(
    ("answers", "command"),
    [
        ({"head_bucket": Refusal("404")}, "trainstack bootstrap"),
        (
            {"get_bucket_encryption": Refusal("ServerSideEncryptionConfigurationNotFoundError")},
            "put-bucket-encryption",
        ),
        (
            {
                "get_bucket_encryption": {
                    "ServerSideEncryptionConfiguration": {
                        "Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
                    }
                }
            },
            "put-bucket-encryption",
        ),
        ({"get_bucket_versioning": {"Status": "Suspended"}}, "put-bucket-versioning"),
        (
            {"get_public_access_block": Refusal("NoSuchPublicAccessBlockConfiguration")},
            "put-public-access-block",
        ),
        (
            {
                "get_public_access_block": {
                    "PublicAccessBlockConfiguration": {**PUBLIC, "BlockPublicPolicy": False}
                }
            },
            "put-public-access-block",
        ),
        ({"simulate_principal_policy": denied}, "trainstack bootstrap"),
    ],
)
def test_a_bucket_without_a_part_names_the_command(answers: dict[str, Any], command: str) -> None:
    found = one(BUCKET, GIT, **answers)
    assert found.state is State.SHORT and command in found.fix
    assert command == "trainstack bootstrap" or f"--bucket {NAME}" in found.fix


def test_the_bucket_of_the_backend_is_checked() -> None:
    _, cloud = asked(BUCKET, backend="s3://other?region=us-east-1", simulate_principal_policy=denied)
    assert ("head_bucket", {"Bucket": "other"}) in cloud.asked
    (found,), cloud = asked(BUCKET, backend="https://api.pulumi.com")
    assert (found.state, cloud.asked) == (State.NOTE, [])
    assert one(BUCKET, head_bucket=Refusal("AccessDenied")).state is State.UNKNOWN


@pytest.mark.parametrize("pipeline", [GIT, IDS, LAB], ids=["github", "github-ids", "gitlab"])
def test_the_trust_is_compared_with_the_subject_of_the_pipeline(pipeline: Pipeline) -> None:
    (right,) = federated(ACCOUNT, pipeline, (pipeline.subject(STACK),))["Statement"]
    (other,) = federated(ACCOUNT, pipeline, (pipeline.subject("x").replace("acme", "evil"),))["Statement"]
    (wide,) = federated(ACCOUNT, pipeline, (f"{pipeline.subject(STACK)}*",))["Statement"]
    assert one(TRUST, pipeline, get_role=role(right)).state is State.READY
    for rules in ("branch_policy", ""):
        (open_to_all,), _ = asked(TRUST, pipeline, rules=rules, get_role=role(right))
        assert open_to_all.state is (State.READY if pipeline is LAB else State.NOTE), "without an approval"
    for wrong in (other, wide, {**right, "Condition": {}}):
        found = one(TRUST, pipeline, get_role=role(wrong))
        assert found.state is State.SHORT
        words = shlex.split(found.fix)
        assert words[:3] == ["aws", "iam", "update-assume-role-policy"] and f"deployer-{STACK}" in words
        assert json.loads(words[-1])["Statement"] == [right]
    states = [one(TRUST, None, get_role=role(given)).state for given in (right, wide)]
    assert states == [State.NOTE, State.SHORT]


def test_the_form_of_a_subject_of_github_is_ready_only_where_it_is_known() -> None:
    for trusted, other in ((GIT, IDS), (IDS, GIT)):
        (statement,) = federated(ACCOUNT, trusted, (trusted.subject(STACK),))["Statement"]
        assert one(TRUST, trusted, get_role=role(statement)).state is State.READY
        assert one(TRUST, other, get_role=role(statement)).state is State.SHORT
        found = one(TRUST, GIT, form_known=False, get_role=role(statement))
        assert found.state is State.NOTE and "gh api repos/acme/stacks/" in found.fix
    found = one(TRUST, GIT, form_known=False, get_role=role(AGENCY | {"Condition": {}}))
    assert found.state is State.SHORT
    (wrong,) = federated(ACCOUNT, IDS, (IDS.subject("x"),))["Statement"]
    found = one(TRUST, GIT, form_known=False, get_role=role(wrong))
    assert found.state is State.SHORT and "gh api repos/acme/stacks/" in found.fix


def test_an_agency_is_asked_for_an_external_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    assert one(TRUST, get_role=role(AGENCY)).state is State.READY
    assert one(TRUST, GIT, get_role=role(AGENCY)).state is State.NOTE, "its pipelines cannot log in"
    account_root = {**AGENCY, "Principal": {"AWS": "arn:aws:iam::111122223333:root"}}
    for wrong in ({**AGENCY, "Condition": {}}, {**AGENCY, "Principal": {"AWS": "*"}}, account_root):
        assert one(TRUST, get_role=role(wrong)).state is State.SHORT
    # A fleet logs in with the external id of a profile.
    for external_id, state in (("acme-2041-77", State.READY), ("another-id", State.SHORT)):
        config = tmp_path / external_id
        config.write_text(f"[profile fleet]\nrole_arn = {ROLE}\nexternal_id = {external_id}\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
        monkeypatch.setenv("AWS_PROFILE", "fleet")
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
        found = one(TRUST, get_role=role(AGENCY))
        assert found.state is state and (state is State.READY or external_id in found.fix)


def test_a_role_that_is_missing_or_trusts_no_one_is_short() -> None:
    assert f"--skip {TRUST}" in one(TRUST, GIT, get_role=Refusal("NoSuchEntity")).fix
    assert one(TRUST, GIT, get_role=role({**AGENCY, "Effect": "Deny"})).state is State.SHORT


def subscribers(*addresses: str) -> dict[str, Any]:
    return {"Subscribers": [{"SubscriptionType": "EMAIL", "Address": one} for one in addresses]}


NOTIFIED = {
    "Notifications": [
        {
            "NotificationType": kind, "ComparisonOperator": "GREATER_THAN", "Threshold": 100.0,
            "ThresholdType": "PERCENTAGE", "NotificationState": "OK",
        }
        for kind in ("ACTUAL", "FORECASTED")
    ]
}  # fmt: skip


def test_the_budget_mails_the_addresses_of_the_stack() -> None:
    mails = account(None).spec.budget.alert_emails

    def answers(*addresses: str) -> list[Answer]:
        return asked(
            CONTACT,
            describe_notifications_for_budget=NOTIFIED,
            describe_subscribers_for_notification=subscribers(*addresses),
        )[0]

    assert [answer.state for answer in answers(*mails)] == [State.READY]
    found = answers("other@acme.com")
    assert len(found) == 2 * len(mails) and {answer.state for answer in found} == {State.SHORT}
    assert "NotificationState" not in found[0].fix and f"Address={mails[0]}" in found[0].fix
    lacks: list[Any] = [Refusal("NotFoundException"), {"Notifications": []}]
    for lacking in lacks:
        assert one(CONTACT, describe_notifications_for_budget=lacking).state is State.SHORT


def of_guest(check: str, **answers: Any) -> list[Answer]:
    """The answers about a cluster whose large stack is in another account."""
    cloud = Answering(**{**MADE, **answers})
    manager = load_file("large-aws").spec
    away = manager.model_copy(update={"on": manager.on.model_copy(update={"account_id": "210987654321"})})
    login = {"role_arn": f"arn:aws:iam::{ACCOUNT}:role/deployer-large-aws", "external_id": "ml-1"}
    made = replace(account(cloud, on__assume_role=login), manager=away)
    setup = ClientSetup("acme", GIT, "s3://of-the-manager", asked=lambda _: "")
    return list(answered(check, checks_of(setup)[check], made))


def test_the_state_of_a_cluster_in_its_own_account_is_that_of_its_large_stack() -> None:
    (found,) = of_guest(BUCKET, head_bucket=Refusal("403"))
    assert found.state is State.READY and "210987654321" in found.text


def test_the_deployer_of_a_cluster_in_its_own_account_trusts_that_of_its_large_stack() -> None:
    statement = {
        "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::210987654321:role/deployer-dev-aws"},
        "Action": "sts:AssumeRole", "Condition": {"StringEquals": {"sts:ExternalId": "ml-1"}},
    }  # fmt: skip
    wrong = [{**statement, "Condition": {}}, {**statement, "Principal": {"AWS": ROLE}}, AGENCY]
    (right,) = of_guest(TRUST, get_role=role(statement))
    assert right.state is State.READY
    for one_ in (*([one] for one in wrong), [statement, AGENCY], []):
        (found,) = of_guest(TRUST, get_role=role(*one_))
        assert found.state is State.SHORT and "210987654321" in found.fix
