"""One object with two owners: a refresh shows what the other wrote, and the next update removes it."""

import json
from typing import Any

import pytest

from rehearsal.aws import owners
from rehearsal.core.emulation.entries import Columns, relations
from rehearsal.core.schema import Schemas
from tests.rehearsal.aws.harness import EKS_TRUST, Driver
from tests.rehearsal.driver import refused

ROLE: dict[str, Any] = {"name": "role", "assumeRolePolicy": EKS_TRUST}
READ, WRITE = (f"arn:aws:iam::aws:policy/AmazonS3{one}" for one in ("ReadOnlyAccess", "FullAccess"))
ATTACHMENT, GROUP = "iam/rolePolicyAttachment:RolePolicyAttachment", "ec2/securityGroup:SecurityGroup"
OLD, NEW = "ec2/securityGroupRule:SecurityGroupRule", "vpc/securityGroupIngressRule:SecurityGroupIngressRule"

OUT = "vpc/securityGroupEgressRule:SecurityGroupEgressRule"


def opening(port: int, *ranges: str) -> dict[str, Any]:
    return {"protocol": "tcp", "fromPort": port, "toPort": port, "cidrBlocks": [*ranges]}


def test_every_property_of_a_relation_exists(schemas: Schemas) -> None:
    for relation in relations(owners.FILE):
        assert relation.source
        for facet in relation.facets:
            assert isinstance(facet, Columns)
            schema = schemas.resource(f"aws:{facet.type}")
            assert schema is not None, facet.type
            names = {path.partition("[]")[0].partition(".")[0] for path in facet.paths.values()} - {"id"}
            assert names <= schema.inputs.keys() | schema.outputs.keys(), facet.type


# owner, its inputs, the property, the other, its inputs; `$` is the id of the owner
Pair = tuple[str, dict[str, Any], str, str, dict[str, Any]]
PAIRS: list[Pair] = [
    (
        "iam/role:Role",
        {**ROLE, "managedPolicyArns": [READ]},
        "managedPolicyArns",
        ATTACHMENT,
        {"role": "$", "policyArn": WRITE},
    ),
    (
        "iam/role:Role",
        {**ROLE, "inlinePolicies": [{"name": "a", "policy": "{}"}]},
        "inlinePolicies",
        "iam/rolePolicy:RolePolicy",
        {
            "role": "$",
            "name": "b",
            "policy": json.dumps({"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}),
        },
    ),
    (
        GROUP,
        {"name": "door", "ingress": [opening(22, "10.0.0.0/8")]},
        "ingress",
        OLD,
        {"type": "ingress", "securityGroupId": "$", **opening(443, "10.0.0.0/8")},
    ),
    (
        GROUP,
        {"name": "door", "ingress": [opening(22, "10.0.0.0/8")]},
        "ingress",
        NEW,
        {
            "securityGroupId": "$",
            "ipProtocol": "tcp",
            "fromPort": 22,
            "toPort": 22,
            "cidrIpv4": "10.1.0.0/16",
        },
    ),
    (
        GROUP,
        {"name": "door", "egress": []},
        "egress",
        OUT,
        {"securityGroupId": "$", "ipProtocol": "-1", "cidrIpv4": "0.0.0.0/0"},
    ),
    (
        "ec2/vpc:Vpc",
        {"cidrBlock": "10.9.0.0/16", "tags": {"a": "1"}},
        "tags",
        "ec2/tag:Tag",
        {"resourceId": "$", "key": "b", "value": "2"},
    ),
    (
        "sns/topic:Topic",
        {"name": "t", "policy": "{}"},
        "policy",
        "sns/topicPolicy:TopicPolicy",
        {
            "arn": "$",
            "policy": json.dumps(
                {
                    "Statement": [
                        {"Effect": "Allow", "Action": "sns:Publish", "Principal": "*", "Resource": "*"}
                    ]
                }
            ),
        },
    ),
    (
        "autoscaling/group:Group",
        {
            "name": "g",
            "minSize": 0,
            "maxSize": 1,
            "tags": [{"key": "a", "value": "1", "propagateAtLaunch": True}],
        },
        "tags",
        "autoscaling/tag:Tag",
        {"autoscalingGroupName": "$", "tag": {"key": "b", "value": "2", "propagateAtLaunch": False}},
    ),
]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_refresh_shows_the_others_entry_and_the_next_update_removes_it(aws: Driver, pair: Pair) -> None:
    owner, inputs, path, other, theirs = pair
    key = aws.create(owner, "owner", **inputs)["id"]
    named = {name: key if value == "$" else value for name, value in theirs.items()}
    aws.create(other, "other", **named)
    assert aws.diff("owner", **inputs).changed == ()  # the engine does not know of it
    shown = aws.refresh("owner")
    assert shown is not None and shown[path] != inputs[path]
    assert {
        one.partition("[")[0].removesuffix("All").partition(".")[0]
        for one in aws.diff("owner", **inputs).changed
    } == {path}
    aws.update("owner", **inputs)
    gone = aws.refresh("other")
    assert gone is None or gone[path] == inputs[path]
    assert aws.refresh("owner") is not None and aws.diff("owner", **inputs).changed == ()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_program_that_lists_nothing_keeps_what_others_made(aws: Driver, pair: Pair) -> None:
    owner, inputs, path, other, theirs = pair
    least = {name: value for name, value in inputs.items() if name != path}
    key = aws.create(owner, "owner", **least)["id"]
    aws.create(other, "other", **{name: key if value == "$" else value for name, value in theirs.items()})
    aws.refresh("owner")
    if path != "tags" or not owner.startswith("ec2/"):  # tags that no program lists are removed
        assert aws.diff("owner", **least).changed == ()
    aws.delete("other")
    shown = aws.refresh("owner")
    assert shown is not None and not shown.get(path)


def test_what_an_update_of_something_else_reads_differs_in_the_next_preview(aws: Driver) -> None:
    listed = {**ROLE, "managedPolicyArns": [READ]}
    aws.create("iam/role:Role", "role", **listed)
    aws.create(ATTACHMENT, "other", role="role", policyArn=WRITE)
    aws.update("role", **listed, description="d")
    assert aws.diff("role", **listed, description="d").changed == ("managedPolicyArns",)


def test_an_entry_of_both_is_gone_when_one_is_deleted(aws: Driver) -> None:
    aws.create("iam/role:Role", "role", **ROLE, managedPolicyArns=[READ])
    aws.create(ATTACHMENT, "other", role="role", policyArn=READ)
    assert aws.said
    aws.delete("other")
    shown = aws.refresh("role")
    assert shown is not None and shown["managedPolicyArns"] == []


def test_a_rule_of_both_is_refused(aws: Driver) -> None:
    group = aws.create(GROUP, "group", ingress=[opening(22, "10.0.0.0/8")])["id"]
    rule = {"type": "ingress", "securityGroupId": group, **opening(22, "10.0.0.0/8"), "protocol": "6"}
    refused(r"InvalidPermission\.Duplicate", aws.create, OLD, "rule", **rule)
    table = aws.create("ec2/vpc:Vpc", "v", cidrBlock="10.0.0.0/16")["mainRouteTableId"]
    way = {"routeTableId": table, "destinationCidrBlock": "10.8.0.0/16", "natGatewayId": "nat-1"}
    aws.create("ec2/route:Route", "one", **way)
    refused("RouteAlreadyExists", aws.create, "ec2/route:Route", "two", **way)


def test_a_list_that_excludes_others_removes_them_at_once(aws: Driver) -> None:
    aws.create("iam/role:Role", "role", **ROLE)
    aws.create(ATTACHMENT, "other", role="role", policyArn=WRITE)
    exclusive = "iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive"
    aws.create(exclusive, "only", roleName="role", policyArns=[READ])
    assert aws.refresh("other") is None


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (ATTACHMENT, {"role": "role", "policyArn": READ}),
        ("s3/bucketPublicAccessBlock:BucketPublicAccessBlock", {"bucket": "b-1", "blockPublicAcls": True}),
        ("cloudwatch/eventRule:EventRule", {"name": "r", "scheduleExpression": "rate(1 day)"}),
        ("sns/topic:Topic", {"name": "t"}),
    ],
)
def test_a_create_that_is_a_put_is_a_warning(aws: Driver, token: str, inputs: dict[str, Any]) -> None:
    aws.create("iam/role:Role", "role", **ROLE)
    aws.create("s3/bucket:Bucket", "b", bucket="b-1")
    first = aws.create(token, "one", **inputs)["id"]
    assert not aws.said and aws.create(token, "two", **inputs)["id"] == first
    assert "::one" in aws.said[0]
    aws.delete("one")
    assert aws.refresh("two") is None


def test_two_of_a_type_without_a_row_are_one_object(aws: Driver) -> None:
    texts = [json.dumps({"rules": [{"rulePriority": number}]}) for number in (1, 2)]
    for name, text in zip(("one", "two"), texts, strict=True):
        aws.create("ecr/lifecyclePolicy:LifecyclePolicy", name, repository="r", policy=text)
    assert "::one" in aws.said[0]
    shown = aws.refresh("one")
    assert shown is not None and shown["policy"] == texts[1]
    aws.delete("two")
    assert aws.refresh("one") is None


def test_the_value_of_a_tag_is_that_of_its_last_writer(aws: Driver) -> None:
    vpc = aws.create("ec2/vpc:Vpc", "v", cidrBlock="10.0.0.0/16", tags={"Name": "a"})["id"]
    aws.create("ec2/tag:Tag", "t", resourceId=vpc, key="Name", value="b")
    shown = aws.refresh("v")
    assert shown is not None and shown["tags"] == {"Name": "b"}
    assert aws.diff("v", cidrBlock="10.0.0.0/16", tags={"Name": "a"}).changed == ("tags.Name",)
    aws.update("v", cidrBlock="10.0.0.0/16", tags={"Name": "a"})
    theirs = aws.refresh("t")
    assert theirs is not None and theirs["value"] == "a"


def test_a_key_policy_beside_a_key_without_one_is_no_conflict(aws: Driver) -> None:
    key = aws.create("kms/key:Key", "k")["id"]
    statement = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "kms:*", "Resource": "*"}
    text = json.dumps({"Statement": [statement]})
    aws.create("kms/keyPolicy:KeyPolicy", "p", keyId=key, policy=text)
    assert not aws.said
    shown = aws.refresh("k")
    assert shown is not None and shown["policy"] == text and aws.diff("k").changed == ()


def test_a_route_is_imported_by_its_table_and_range(aws: Driver) -> None:
    table = aws.create("ec2/vpc:Vpc", "v", cidrBlock="10.0.0.0/16")["mainRouteTableId"]
    way = {"routeTableId": table, "destinationCidrBlock": "0.0.0.0/0", "natGatewayId": "nat-1"}
    aws.create("ec2/route:Route", "r", **way)
    assert aws.imported("ec2/route:Route", "again", f"{table}_0.0.0.0/0", **way).changed == ()


def test_the_last_of_two_policies_of_a_bucket_counts(aws: Driver) -> None:
    aws.create("s3/bucket:Bucket", "b", bucket="b-1")
    statement = {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "s3:*"}
    statement["Resource"] = "arn:aws:s3:::b-1/*"
    texts = [json.dumps({"Statement": [{**statement, "Sid": sid}]}) for sid in ("a", "b")]
    for name, text in zip(("one", "two"), texts, strict=True):
        aws.create("s3/bucketPolicy:BucketPolicy", name, bucket="b-1", policy=text)
    shown = aws.refresh("one")
    assert shown is not None and shown["policy"] == texts[1]
    assert aws.diff("one", bucket="b-1", policy=texts[0]).changed == ("policy",)


def test_topics_of_one_name_must_be_the_same(aws: Driver) -> None:
    aws.create("sns/topic:Topic", "one", name="t")
    refused("InvalidParameter", aws.create, "sns/topic:Topic", "two", name="t", displayName="other")
