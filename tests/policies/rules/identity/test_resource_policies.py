"""Policies of resources that admit everybody, and accepted ones close to them."""

import json
from typing import Any

import pytest

from policies.resource import PartlyKnown, Resource, UnknownValue
from tests.policies.rules.identity.test_identity import made
from tests.policies.rules.kubernetes.test_pods import results

KEY, QUEUE, TOPIC = "aws:kms/key:Key", "aws:sqs/queuePolicy:QueuePolicy", "aws:sns/topicPolicy:TopicPolicy"
SECRET, REPOSITORY = (
    "aws:secretsmanager/secretPolicy:SecretPolicy",
    "aws:ecr/repositoryPolicy:RepositoryPolicy",
)
PERMISSION = "aws:lambda/permission:Permission"
MEMBER, POLICY = "gcp:projects/iAMMember:IAMMember", "gcp:pubsub/topicIAMPolicy:TopicIAMPolicy"
OWN = {"StringEquals": {"aws:SourceOwner": "123456789012"}}


def allowing(principal: Any = "*", **more: Any) -> str:
    return json.dumps({"Statement": [{"Effect": "Allow", "Principal": principal, "Action": "*", **more}]})


def bound(*members: str) -> str:
    return json.dumps({"bindings": [{"role": "roles/pubsub.publisher", "members": members}]})


@pytest.mark.parametrize("kind", [KEY, QUEUE, TOPIC, SECRET, REPOSITORY])
@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (allowing(), "fail"),
        (allowing({"AWS": ["arn:aws:iam::123456789012:root", "*"]}), "fail"),
        (allowing({"AWS": "arn:aws:iam::123456789012:root"}), "pass"),
        (allowing(Condition=OWN), "pass"),
        (allowing(Condition={"StringEqualsIfExists": OWN["StringEquals"]}), "fail"),
        (allowing(Condition={"ArnLike": {"aws:SourceArn": "arn:aws:sns:*:*:jobs"}}), "fail"),
        (allowing(Condition={"ArnLike": {"aws:SourceArn": "arn:aws:sns:*:123456789012:jobs"}}), "pass"),
        (allowing(Condition={"ArnEquals": {"aws:SourceArn": "arn:aws:s3:::uploads"}}), "pass"),
        # Statements that protect, and not those that allow: bridgecrewio/checkov issues 4394 and 4401.
        (allowing(Effect="Deny"), "pass"),
        ("no document", "undetermined"),
    ],
)
def test_a_document_names_its_callers(kind: str, document: str, expected: str) -> None:
    assert results("MLS-IAM-09", made(kind, policy=document)) == {expected}


def test_an_account_is_named_by_its_key_of_kms_and_a_service_names_none() -> None:
    through = {"kms:ViaService": "s3.us-east-1.amazonaws.com"}
    for condition, expected in (
        (through, "fail"),
        ({**through, "kms:CallerAccount": "123456789012"}, "pass"),
    ):
        document = allowing(Condition={"StringEquals": condition})
        assert results("MLS-IAM-09", made(KEY, policy=document)) == {expected}


def test_a_resource_without_a_policy_admits_its_account_and_one_of_an_account_is_not_read() -> None:
    assert results("MLS-IAM-09", made(KEY)) == {"pass"}
    read = Resource(KEY, "k", "k", id="k", props={"arn": "arn:aws:kms:x:1:key/k"}, origin="live")
    assert results("MLS-IAM-09", read) == {"not-applicable"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (made(PERMISSION, principal="*"), "fail"),
        (made(PERMISSION, principal="*", principalOrgId="o-a1b2c3d4e5"), "pass"),
        (made(PERMISSION, principal="*", sourceArn="arn:aws:sns:*:*:jobs"), "fail"),
        (made(PERMISSION, principal="s3.amazonaws.com"), "pass"),
        (made(MEMBER, role="roles/viewer", member="allUsers"), "fail"),
        (made(MEMBER, role="roles/viewer", member="domain:example.com"), "pass"),
        (made("gcp:folder/iAMBinding:IAMBinding", members=["user:a@b.c", "allAuthenticatedUsers"]), "fail"),
        (made("gcp:organizations/iAMPolicy:IAMPolicy", policyData=bound("allUsers")), "fail"),
        (made(POLICY, policyData=bound("user:a@b.c", "principalSet://goog/public:all")), "fail"),
        (made(POLICY, policyData=bound("user:a@b.c")), "pass"),
    ],
)
def test_permissions_of_functions_and_bindings(source: Resource, expected: str) -> None:
    assert results("MLS-IAM-09", source) == {expected}


def test_a_member_that_is_not_known_is_judged_by_its_source() -> None:
    account = "urn:pulumi:x::p::gcp:serviceaccount/account:Account::trainer"
    bucket = "urn:pulumi:x::p::gcp:storage/bucket:Bucket::data"
    for sources, expected in (
        ((account,), "pass"),
        ((account, bucket), "undetermined"),
        ((), "undetermined"),
    ):
        later = UnknownValue("member", "is not known before the deployment")
        props = PartlyKnown({"role": "roles/viewer", "member": later})
        source = Resource(
            MEMBER, "m", "m", props=props, asked=props, references={"member": sources}, origin="planned"
        )
        assert results("MLS-IAM-09", source) == {expected}
