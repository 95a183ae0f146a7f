"""The evaluation of policies, by the tables and examples of the IAM user guide (read 2026-11-28).

Pages: "Policy evaluation logic", "Condition operators", "Set operators for multi-valued context keys",
"IAM JSON policy elements: Resource".
"""

import json
from typing import Any

import pytest

from rehearsal.aws.rules import reading
from rehearsal.core.model import Record
from rehearsal.dataplane.aws.iam_policies import AccessCheck, permits, trusts

ARN = "arn:aws:s3:::bucket/teams/vision/x"
SUBNET = "arn:aws:ec2:eu-west-1:111122223333:subnet/subnet-1"


def allow(**more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", **more}


def verdict(statements: list[dict[str, Any]], resource: str = ARN, **context: str | tuple[str, ...]) -> bool:
    keys = {name.replace("__", ":"): value for name, value in context.items()}
    return permits([{"Statement": statements}], AccessCheck("s3:GetObject", resource, keys))


def test_a_deny_wins_and_nothing_is_allowed_by_default() -> None:
    assert not verdict([])
    assert verdict([allow()])
    for order in (1, -1):
        assert not verdict([allow(), {**allow(), "Effect": "Deny"}][::order])


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [
        ("arn:aws:s3:::bucket/teams/vision/*", True),
        ("arn:aws:s3:::bucket/teams/*", True),
        ("arn:aws:s3:::bucket/teams/vision/?", True),
        ("arn:aws:s3:::bucket/teams/vision/[x]", False),  # brackets are no wildcards
        ("arn:aws:s3:::bucket/Teams/vision/x", False),  # resources are case-sensitive
        ("arn:aws:s3:::bucket", False),
    ],
)
def test_wildcards_of_resources(pattern: str, allowed: bool) -> None:
    assert verdict([allow(Resource=pattern)]) is allowed


@pytest.mark.parametrize("action", ["S3:getobject", "s3:Get*", "s3:G?tObject", "*"])
def test_actions_ignore_case(action: str) -> None:
    assert verdict([allow(Action=action)])


CONDITIONS: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    # Keys are compared without case, values with it; several values of a row are alternatives.
    ({"StringEquals": {"AWS:RequestedRegion": ["a", "b"]}}, {"aws__RequestedRegion": "b"}, True),
    ({"StringEquals": {"aws:RequestedRegion": "A"}}, {"aws__RequestedRegion": "a"}, False),
    # Several rows and operators must all hold.
    ({"StringEquals": {"x:a": "1", "x:b": "2"}}, {"x__a": "1"}, False),
    ({"StringEquals": {"x:a": "1"}, "Bool": {"x:b": "true"}}, {"x__a": "1", "x__b": "TRUE"}, True),
    # A negated operator holds where none of the values is the one; and for an absent key.
    ({"StringNotEquals": {"x:a": ["1", "2"]}}, {"x__a": "2"}, False),
    ({"StringNotEquals": {"x:a": ["1", "2"]}}, {"x__a": "3"}, True),
    ({"StringNotEquals": {"x:a": "1"}}, {}, True),
    # An absent key fails, unless IfExists.
    ({"StringEquals": {"x:a": "1"}}, {}, False),
    ({"StringEqualsIfExists": {"x:a": "1"}}, {}, True),
    ({"StringEqualsIfExists": {"x:a": "1"}}, {"x__a": "2"}, False),
    ({"Null": {"x:a": "true"}}, {}, True),
    ({"Null": {"x:a": "false"}}, {}, False),
    ({"Null": {"x:a": "false"}}, {"x__a": ("1",)}, True),
    # ForAllValues holds for an absent key and an empty list; ForAnyValue does not.
    ({"ForAllValues:StringEquals": {"x:a": ["1", "2"]}}, {"x__a": ("1", "2")}, True),
    ({"ForAllValues:StringEquals": {"x:a": ["1", "2"]}}, {"x__a": ("1", "3")}, False),
    ({"ForAllValues:StringEquals": {"x:a": ["1"]}}, {}, True),
    ({"ForAllValues:StringEquals": {"x:a": ["1"]}}, {"x__a": ()}, True),
    ({"ForAnyValue:StringEquals": {"x:a": ["1"]}}, {"x__a": ("1", "3")}, True),
    ({"ForAnyValue:StringEquals": {"x:a": ["1"]}}, {"x__a": ("3",)}, False),
    ({"ForAnyValue:StringEquals": {"x:a": ["1"]}}, {}, False),
    ({"ForAnyValue:StringNotEquals": {"x:a": ["1"]}}, {}, False),
    # The six parts of an ARN are compared one by one.
    ({"ArnEquals": {"ec2:Subnet": SUBNET}}, {"ec2__Subnet": SUBNET}, True),
    ({"ArnLike": {"ec2:Subnet": "arn:aws:ec2:*:*:subnet/*"}}, {"ec2__Subnet": SUBNET}, True),
    ({"ArnLike": {"ec2:Subnet": "arn:aws:ec2:*:subnet/subnet-1"}}, {"ec2__Subnet": SUBNET}, False),
    ({"StringLike": {"s3:prefix": ["teams/vision/*"]}}, {"s3__prefix": "teams/vision/"}, True),
    ({"StringLike": {"s3:prefix": ["teams/vision/*"]}}, {"s3__prefix": "teams/visions/"}, False),
]


@pytest.mark.parametrize(("condition", "context", "holds"), CONDITIONS)
def test_conditions(condition: dict[str, Any], context: dict[str, Any], holds: bool) -> None:
    assert verdict([allow(Condition=condition)], **context) is holds
    # In a Deny the same condition denies where it holds.
    denial = {**allow(Condition=condition), "Effect": "Deny"}
    assert verdict([allow(), denial], **context) is not holds


def test_a_condition_that_is_unknown_here_allows_nothing_and_denies() -> None:
    unknown = {"DateGreaterThan": {"aws:CurrentTime": "2026-01-01T00:00:00Z"}}
    context = {"aws__CurrentTime": "2026-11-28T00:00:00Z"}
    assert not verdict([allow(Condition=unknown)], **context)
    assert not verdict([allow(), {**allow(Condition=unknown), "Effect": "Deny"}], **context)


_LAMBDA, _ARN = "lambda.amazonaws.com", "arn:aws:iam::123456789012:role/worker"


@pytest.mark.parametrize(
    ("denied", "trusted"),
    [
        ({"Principal": {"Service": _LAMBDA}}, False),
        ({"Principal": {"Service": ["ec2.amazonaws.com", _LAMBDA]}, "Action": "sts:*"}, False),
        ({"Principal": "*"}, False),
        ({"Principal": {"AWS": "*"}}, False),
        ({"Principal": {"Service": "ec2.amazonaws.com"}}, True),
        ({"Principal": {"AWS": "arn:aws:iam::123456789012:root"}}, True),
        ({"Principal": "*", "Action": "sts:TagSession"}, True),
        ({"Principal": "*", "Condition": {"Bool": {"aws:PrincipalIsAWSService": "false"}}}, True),
        ({"Principal": "*", "Condition": {"Bool": {"aws:principalisawsservice": "true"}}}, False),
        ({"Principal": "*", "Condition": {"StringNotEquals": {"aws:SourceAccount": "123456789012"}}}, True),
        ({"Principal": "*", "Condition": {"StringNotEquals": {"aws:SourceAccount": "210987654321"}}}, False),
        # A Deny that depends on what is not known of the call is not judged.
        ({"Principal": "*", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}, True),
        ({"Principal": "*", "Condition": {"ArnNotLike": {"aws:SourceArn": "arn:aws:lambda:*"}}}, True),
    ],
)
def test_a_service_is_trusted_unless_a_deny_is_about_it(denied: dict[str, Any], trusted: bool) -> None:
    allow = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": _LAMBDA}}
    deny = {"Effect": "Deny", "Action": "sts:AssumeRole", **denied}
    for order in (1, -1):
        inputs = {"assumeRolePolicy": json.dumps({"Statement": [allow, deny][::order]})}
        role = Record(1, "aws", "aws:iam/role:Role", "", "worker", "", "", inputs, {**inputs, "arn": _ARN})
        assert trusts(role, _LAMBDA, frozenset({"sts:AssumeRole"})) is trusted
        # A rule of a create does not know what conditions are about.
        assert reading.trusts(role, _LAMBDA) is (trusted or "Condition" in denied)
