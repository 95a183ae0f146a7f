"""Every policy document of the shipped stacks on AWS, held against AWS's data, and their sizes."""

import functools
import json
from typing import Any

import pytest

from infra import stackspec
from infra.catalog.aws.jobs import jobs, machine_problems
from infra.errors import UserError
from infra.stackspec import StackSpec
from infra.stackspec.document import read
from tests.stacks.composition.composed import CONFIG, FILES, Pair, stack_spec
from tests.stacks.iam import judge
from tests.stacks.iam.documents import RESOURCE_POLICIES, Document, documents

PAIRS = [pair for pair in FILES if pair[1] == "aws"]
# What the data does not know, and documentation of AWS says. Each has a source and the day it was read.
EXCEPTIONS = {
    # CloudWatch Logs user guide, "Encrypt log data in CloudWatch Logs using AWS KMS", read 2026-11-28: its
    # key policy has ArnEquals for the group, and kms:Describe* beside the actions that know the key.
    "ArnEquals does not compare kms:EncryptionContext:aws:logs:arn, which is String",
    "kms:Describe* does not know the condition key kms:EncryptionContext:aws:logs:arn",
}
# Characters or bytes. Sources, read 2026-11-28: IAM user guide, "IAM and AWS STS quotas" (the trust policy by
# default); KMS developer guide, "Resource quotas"; user guides of S3 (bucket policies), EFS, SNS (quotas).
INLINE, MANAGED = 10_240, 6_144
SIZES = {
    "aws:iam/role:Role": 2_048,
    "aws:iam/policy:Policy": MANAGED,
    "aws:kms/key:Key": 32 * 1024,
    "aws:s3/bucketPolicy:BucketPolicy": 20 * 1024,
    "aws:efs/fileSystemPolicy:FileSystemPolicy": 20_000,
    "aws:sns/topicPolicy:TopicPolicy": 30_720,
}


@functools.cache
def composed(pair: Pair) -> tuple[Document, ...]:
    return tuple(documents(stack_spec(pair)))


@pytest.mark.parametrize("pair", PAIRS)
def test_the_data_of_aws_knows_every_action_type_and_key(pair: Pair) -> None:
    assert problems(composed(pair)) == []


def problems(found: tuple[Document, ...]) -> list[str]:
    rows = []
    for one in found:
        trust = one.type == "aws:iam/role:Role"
        error = judge.grammar(
            one.text, trust=trust, resource_policy=one.type in RESOURCE_POLICIES and not trust
        )
        rows += [f"{one.name}: {error}"] if error else []
        rows += [
            f"{one.name}: {text}" for text in judge.findings(one.text, trust=trust) if text not in EXCEPTIONS
        ]
    for role in {one.role for one in found if one.role}:
        texts = [one.text for one in found if one.role == role]
        rows += [f"{role}: {text}" for text in judge.missing_types(texts)]
    return rows


@pytest.mark.parametrize("pair", PAIRS)
def test_no_policy_is_larger_than_its_service_takes(pair: Pair) -> None:
    assert too_large(composed(pair)) == []


def too_large(found: tuple[Document, ...]) -> list[str]:
    rows = [f"{one.name}: {one.size}" for one in found if one.size > SIZES.get(one.type, INLINE)]
    for role in {one.role for one in found if one.role}:
        total = sum(one.size for one in found if one.role == role and not one.managed)
        rows += [f"{role}: {total} inline"] if total > INLINE else []
    return rows


def largest(plans: int) -> StackSpec:
    """The small stack with the longest names, all zones and machine types, and so many training plans.

    Raises UserError where the rules refuse it.
    """
    plain = json.loads(json.dumps(read(CONFIG / FILES["small", "aws"], "f")))
    values = {key.partition(":")[2]: value for key, value in plain["config"].items()}
    spec, region = values["spec"], "us-east-1"
    values["region"] = region
    planned = [name for name, one in jobs.machines.items() if one.planned]
    arn = f"arn:aws:sagemaker:{region}:{spec['on']['account_id']}:training-plan/{'p' * 61}"
    bought = [{"kind": "training_plan", "arn": f"{arn}-{index}"} for index in range(plans)]
    rows = [(planned[index % len(planned)], one) for index, one in enumerate(bought)]
    rows += [(name, {"kind": "on_demand"}) for name in jobs.machines]
    spec["layout"]["machines"] = [
        {"name": f"m{index}", "machine": name, "purchase": how, "max_nodes": 2}
        for index, (name, how) in enumerate(rows)
    ]
    spec["layout"]["zones"] = [f"{region}{letter}" for letter in "abcdef"]
    spec["layout"]["notebooks"] = {"machines": [name for name in jobs.machines if not _refused(name)]}
    team = "t" * 60
    spec["teams"] = [{"name": team}]
    spec["layout"]["people"] = [{"name": "p" * 19, "email": "p@example.com", "team": team}]
    spec["smoke"]["pools"] = [f"m{plans}"]
    spec["smoke"]["image"] = spec["smoke"]["image"].replace("us-west-2", region)
    return stackspec.load("s" * 20, values, "f").spec


def _refused(machine: str) -> bool:
    return any(machine_problems("machine", machine, notebook=True))


def test_the_largest_stack_has_policies_of_a_size_that_iam_takes() -> None:
    found = tuple(documents(largest(4)))
    assert too_large(found) == []
    assert problems(found) == []
    with pytest.raises(UserError) as caught:
        largest(5)
    assert caught.value.codes == (("too-many-training-plans", "layout.machines[4].purchase.arn"),)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"Action": "sagemaker:CreateMlflowAp"}, "unknown action"),
    ({"Action": "sagemaker:CreateMlflowTracking*Xs"}, "unknown action"),
    ({"Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket"}, "takes none"),
    (
        {"Action": "sagemaker:ListApps", "Resource": "arn:aws:sagemaker:us-west-2:111122223333:app/*"},
        "takes none",
    ),
    (
        {"Action": "sagemaker:CreateApp", "Condition": {"StringEquals": {"sagemaker:Owner": "x"}}},
        "condition key",
    ),
    (
        {"Action": "sagemaker:DeleteApp", "Condition": {"StringEquals": {"aws:RequestTag/x": "x"}}},
        "condition key",
    ),
    ({"Action": "ec2:DeleteVolume", "Condition": {"ArnEquals": {"ec2:Subnet": "x"}}}, "condition key"),
    ({"Action": "s3:GetObject", "Condition": {"NumericEquals": {"aws:SourceArn": "1"}}}, "does not compare"),
    (
        {"Action": "sagemaker:CreateApp", "Condition": {"StringEquals": {"sagemaker:InstanceTypes": "x"}}},
        "several",
    ),
]


@pytest.mark.parametrize(("statement", "finding"), BAD)
def test_the_judge_finds_what_the_data_does_not_know(statement: dict[str, Any], finding: str) -> None:
    text = json.dumps(
        {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Resource": "*", **statement}]}
    )
    assert any(finding in one for one in judge.findings(text)), list(judge.findings(text))
    assert not judge.grammar(text)


@pytest.mark.parametrize(
    "statement",
    [
        {"Effect": "Permit"},
        {"Action": "GetObject"},
        {"Resource": "bucket"},
        {"Condition": {"StringEqual": {"aws:SourceArn": "x"}}},
        {"Resources": "*"},
        {"Principal": "*"},
    ],
)
def test_the_grammar_refuses_what_iam_refuses(statement: dict[str, Any]) -> None:
    whole = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", **statement}
    assert judge.grammar(json.dumps({"Version": "2012-10-17", "Statement": [whole]}))
