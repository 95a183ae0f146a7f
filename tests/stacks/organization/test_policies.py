"""Published policies of organizations, judged on the requests of each shipped stack on AWS."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rehearsal.dataplane.aws.iam_policies import AccessCheck, permits
from tests.stacks.composition.composed import Pair, composed, stack_spec
from tests.stacks.organization.api_requests import DEPLOYER, requests

POLICIES = tomllib.loads(Path(__file__).with_name("policies.toml").read_text(encoding="utf-8"))["policy"]
PAIRS: list[Pair] = [(profile, "aws") for profile in ("small", "small-cluster", "medium")]
# Attached to every account by default: a list of denials is added to it.
_ALL = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


def denied(policy: dict[str, Any], asked: list[AccessCheck], region: str) -> set[str]:
    document = {"Statement": json.loads(policy["statements"].replace("${region}", region))}
    return {one.action for one in asked if not permits([_ALL, document], one)}


def changed(pair: Pair, values: dict[str, Any]) -> list[AccessCheck]:
    def change(spec: Any) -> None:
        for path, value in values.items():
            *steps, last = path.split(".")
            place = spec
            for step in steps:
                place = place.setdefault(step, {})
            place[last] = value

    return requests(composed(pair, change), stack_spec(pair).region)


@pytest.mark.parametrize("pair", PAIRS, ids=[profile for profile, _ in PAIRS])
def test_a_stack_asks_for_what_published_policies_allow(pair: Pair) -> None:
    region = stack_spec(pair).region
    asked = requests(composed(pair), region)
    for policy in POLICIES:
        wanted = policy.get("denies", {}).get(pair[0], [])
        if wanted == "created":
            mentioned = {
                action for one in json.loads(policy["statements"]) for action in _listed(one["Action"])
            }
            wanted = mentioned & {one.action for one in asked}
        assert denied(policy, asked, region) == set(wanted), policy["name"]


@pytest.mark.parametrize("pair", PAIRS, ids=[profile for profile, _ in PAIRS])
def test_a_change_of_the_spec_satisfies_a_policy(pair: Pair) -> None:
    region = stack_spec(pair).region
    fixes: dict[str, Any] = {}
    for policy in POLICIES:
        if pair[0] in policy.get("denies", {}):
            fixes |= policy.get("fixed_by", {})
    asked = changed(pair, fixes)
    for policy in POLICIES:
        if "fixed_by" in policy:
            assert denied(policy, asked, region) == set(), policy["name"]


def test_every_policy_has_a_source_and_a_statement_that_denies_something() -> None:
    assert len(POLICIES) >= 10 and len({one["name"] for one in POLICIES}) == len(POLICIES)
    for policy in POLICIES:
        assert policy["source"] and policy["date"]
        assert all(one["Effect"] == "Deny" for one in json.loads(policy["statements"]))


def test_the_judge_sees_what_policies_are_for() -> None:
    """Requests that a policy exists to deny."""
    bad = [
        AccessCheck("ec2:CreateVolume", "arn:aws:ec2:us-east-1:1:volume/v", {"ec2:Encrypted": "false"}),
        AccessCheck(
            "ec2:RunInstances", "arn:aws:ec2:us-east-1:1:instance/i", {"ec2:MetadataHttpTokens": "optional"}
        ),
        AccessCheck(
            "s3:PutObject", "*", {"s3:x-amz-acl": "public-read", "s3:x-amz-server-side-encryption": "AES256"}
        ),
        AccessCheck("ec2:CreateVpc", "*", {"aws:PrincipalArn": "arn:aws:iam::1:root"}),
        AccessCheck("ec2:CreateVpc", "*", {"aws:PrincipalArn": DEPLOYER, "aws:RequestedRegion": "eu-west-1"}),
        AccessCheck("iam:CreateUser", "*", {}),
        AccessCheck("kms:ScheduleKeyDeletion", "*", {"kms:ScheduleKeyDeletionPendingWindowInDays": "7"}),
    ]
    names = (
        *("unencrypted EBS volumes", "IMDSv2", "public S3 buckets", "root user", "other regions"),
        *("IAM users and leaving the organization", "keys deleted in less than 30 days"),
    )
    by_name = {one["name"]: one for one in POLICIES}
    for name, request in zip(names, bad, strict=True):
        assert denied(by_name[name], [request], "us-east-1"), name


def test_a_boundary_is_that_of_every_role() -> None:
    boundary = "arn:aws:iam::123456789012:policy/boundary"
    for pair in PAIRS:

        def change(spec: Any) -> None:
            spec["on"]["permissions_boundary"] = boundary

        roles = composed(pair, change).all("iam/role:Role")
        assert roles and {role.get("permissionsBoundary") for role in roles.values()} == {boundary}


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
