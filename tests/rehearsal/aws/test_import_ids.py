"""Types whose import takes another id than that of the state, by the provider's documentation."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.rehearsal.aws.harness import Driver
from tests.rehearsal.driver import refused


def trusting(service: str, *actions: str) -> str:
    """The trust policy of a role of a service."""
    allow = {"Effect": "Allow", "Action": ["sts:AssumeRole", *actions], "Principal": {"Service": service}}
    return json.dumps({"Version": "2012-10-17", "Statement": [allow]})


Made = tuple[dict[str, Any], str]
"""Inputs, and the id for an import, in which `{id}` is that of the state."""


def _route(aws: Driver) -> Made:
    table = aws.create("ec2/vpc:Vpc", "v", cidrBlock="10.0.0.0/16")["mainRouteTableId"]
    way = {"routeTableId": table, "destinationIpv6CidrBlock": "::/0", "gatewayId": "igw-1"}
    return way, f"{table}_::/0"


def _association(aws: Driver) -> Made:
    vpc, (subnet, _) = aws.network()
    table = aws.create("ec2/routeTable:RouteTable", "t", vpcId=vpc)["id"]
    return {"subnetId": subnet, "routeTableId": table}, f"{subnet}/{table}"


def _reservation(aws: Driver) -> Made:
    _, (subnet, _) = aws.network()
    return {
        "subnetId": subnet,
        "cidrBlock": "10.0.0.128/25",
        "reservationType": "prefix",
    }, f"{subnet}:{{id}}"


def _pod_identity(aws: Driver) -> Made:
    aws.cluster()
    role = aws.create(
        "iam/role:Role", "pods", assumeRolePolicy=trusting("pods.eks.amazonaws.com", "sts:TagSession")
    )["arn"]
    return {"clusterName": "dev", "namespace": "ml", "serviceAccount": "a", "roleArn": role}, "dev,{id}"


def _target(aws: Driver) -> Made:
    rule = aws.create("cloudwatch/eventRule:EventRule", "r", scheduleExpression="rate(1 hour)")["name"]
    topic = aws.create("sns/topic:Topic", "t")["arn"]
    return {"rule": rule, "targetId": "a", "arn": topic}, f"{rule}/a"


def _group_tag(aws: Driver) -> Made:
    template = aws.create(
        "ec2/launchTemplate:LaunchTemplate", "l", imageId="ami-0123456789abcdef0", instanceType="t3.micro"
    )
    where: Any = {"availabilityZones": ["us-east-1a"], "launchTemplate": {"id": template["id"]}}
    group = aws.create("autoscaling/group:Group", "g", name="nodes", minSize=0, maxSize=1, **where)["name"]
    tag = {"key": "a/b", "value": "1", "propagateAtLaunch": False}
    return {"autoscalingGroupName": group, "tag": tag}, f"{group},a/b"


FORMS: dict[str, tuple[Callable[[Driver], Made], str, str]] = {
    "ec2/route:Route": (_route, "expected ROUTETABLEID_DESTINATION", "rtb-1_0.0.0.0/0"),
    "ec2/routeTableAssociation:RouteTableAssociation": (
        _association,
        "Use 'subnet ID/route table ID'",
        "subnet-1/rtb-1",
    ),
    "ec2/subnetCidrReservation:SubnetCidrReservation": (
        _reservation,
        "expected SUBNET_ID:RESERVATION_ID",
        "subnet-1:scr-1",
    ),
    "eks/podIdentityAssociation:PodIdentityAssociation": (
        _pod_identity,
        "use: 'cluster-name,association-id'",
        "dev,a-1",
    ),
    "cloudwatch/eventTarget:EventTarget": (_target, "expected <event-bus-name>/", "default/rule/b"),
    "autoscaling/tag:Tag": (_group_tag, "expected ID,KEY", "nodes,b"),
}
"""Type -> how one is made, error for an id of another form, and the id of one that does not exist."""


@pytest.mark.parametrize("token", FORMS)
def test_it_is_imported_by_the_documented_id_alone(aws: Driver, token: str) -> None:
    make, error, other = FORMS[token]
    inputs, form = make(aws)
    key = aws.create(token, "made", **inputs)["id"]
    assert aws.imported(token, "again", form.format(id=key), **inputs).changed == ()
    assert aws.made["again"][1] == key
    assert aws.get(token, other) is None
    refused(error, aws.get, token, "one")
    assert aws.refresh("made") is not None
    if form.format(id=key) != key:
        refused(error, aws.get, token, key)


def test_a_permission_is_imported_by_the_name_of_its_function(aws: Driver) -> None:
    role = aws.create("iam/role:Role", "role", assumeRolePolicy=trusting("lambda.amazonaws.com"))["arn"]
    code: Any = {"s3Bucket": "b", "s3Key": "k"}
    function = aws.create(
        "lambda/function:Function", "f", name="stop", role=role, runtime="python3.13", handler="m.f", **code
    )
    token = "lambda/permission:Permission"
    inputs: Any = {"function": function["arn"], "statementId": "from-rule"}
    inputs |= {"action": "lambda:InvokeFunction", "principal": "events.amazonaws.com"}
    aws.create(token, "made", **inputs)
    assert aws.imported(token, "again", "stop/from-rule", **inputs).changed == ()
    refused("expected FUNCTION_NAME/STATEMENT_ID", aws.get, token, "from-rule")
