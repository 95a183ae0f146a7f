"""The parts of a VPC from its beginning are found, read, adopted and deleted with it."""

from pathlib import Path
from typing import Any

import pytest

from rehearsal.core.schema import Schemas
from tests.rehearsal.aws.harness import Driver
from tests.rehearsal.driver import refused

TABLE, ACL, GROUP = (
    "ec2/routeTable:RouteTable",
    "ec2/networkAcl:NetworkAcl",
    "ec2/securityGroup:SecurityGroup",
)
RULE = "ec2/securityGroupRule:SecurityGroupRule"


@pytest.fixture
def vpc(aws: Driver) -> dict[str, Any]:
    return aws.create("ec2/vpc:Vpc", "vpc", cidrBlock="10.0.0.0/16")


def test_a_home_of_a_version_that_made_no_parts_gets_them(
    aws: Driver, vpc: dict[str, Any], tmp_path: Path, schemas: Schemas
) -> None:
    default = aws.invoke("ec2/getVpc:getVpc", default=True)["id"]
    parts = [
        one for one in aws.state.find(package="aws") if not one.urn and one.outputs.get("vpcId") == vpc["id"]
    ]
    older = [
        one
        for one in aws.state.find(package="aws")
        if one.outputs.get("vpcId") == default and "Subnet" not in one.type
    ]
    for record in (*parts, *older):
        aws.state.remove(record)
    assert len(parts) == 4 and aws.get(GROUP, vpc["defaultSecurityGroupId"]) is None
    for _ in range(2):  # nothing is made twice
        later = Driver(tmp_path, schemas, aws.state)
    for token, name in (
        (TABLE, "mainRouteTableId"),
        (ACL, "defaultNetworkAclId"),
        (GROUP, "defaultSecurityGroupId"),
    ):
        assert later.get(token, vpc[name]) is not None
    group = later.invoke("ec2/getSecurityGroup:getSecurityGroup", name="default", vpcId=default)
    assert group["vpcId"] == default
    later.made = aws.made
    later.delete("vpc")
    assert later.get(GROUP, vpc["defaultSecurityGroupId"]) is None


def only(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "values": [value]} for name, value in pairs]


@pytest.mark.parametrize(
    ("token", "name"),
    [(TABLE, "mainRouteTableId"), (ACL, "defaultNetworkAclId"), (GROUP, "defaultSecurityGroupId")],
)
def test_each_is_read_by_its_id(aws: Driver, vpc: dict[str, Any], token: str, name: str) -> None:
    found = aws.get(token, vpc[name])
    assert found is not None and found["vpcId"] == vpc["id"] and found["arn"].endswith(f"/{vpc[name]}")


@pytest.mark.parametrize(
    ("function", "filters", "name"),
    [
        ("getRouteTables", [("association.main", "true")], "mainRouteTableId"),
        ("getNetworkAcls", [("default", "true")], "defaultNetworkAclId"),
        ("getNetworkAcls", [("entry.rule-action", "allow")], "defaultNetworkAclId"),
        ("getSecurityGroups", [("group-name", "default")], "defaultSecurityGroupId"),
        ("getSecurityGroups", [("egress.ip-permission.cidr", "0.0.0.0/0")], "defaultSecurityGroupId"),
    ],
)
def test_each_is_found_by_filters(
    aws: Driver, vpc: dict[str, Any], function: str, filters: list[tuple[str, str]], name: str
) -> None:
    wanted = only(("vpc-id", vpc["id"]), *filters)
    assert aws.invoke(f"ec2/{function}:{function}", filters=wanted)["ids"] == [vpc[name]]


def test_a_lookup_shows_associations_and_routes(aws: Driver, vpc: dict[str, Any]) -> None:
    subnet = aws.create("ec2/subnet:Subnet", "s", vpcId=vpc["id"], cidrBlock="10.0.0.0/24")["id"]
    own = aws.create(TABLE, "own", vpcId=vpc["id"])["id"]
    aws.create("ec2/routeTableAssociation:RouteTableAssociation", "a", subnetId=subnet, routeTableId=own)
    way: dict[str, Any] = {"destinationCidrBlock": "0.0.0.0/0", "natGatewayId": "nat-1"}
    aws.create("ec2/route:Route", "r", routeTableId=own, **way)
    by_subnet = aws.invoke("ec2/getRouteTable:getRouteTable", subnetId=subnet)
    assert by_subnet["routeTableId"] == own and by_subnet["associations"][0]["main"] is False
    assert [(one["cidrBlock"], one["natGatewayId"]) for one in by_subnet["routes"]] == [
        ("0.0.0.0/0", "nat-1")
    ]
    main = aws.invoke(
        "ec2/getRouteTable:getRouteTable", vpcId=vpc["id"], filters=only(("association.main", "true"))
    )
    assert main["id"] == vpc["mainRouteTableId"] and main["associations"][0]["main"] is True
    table = {"routeTableId": own, "destinationCidrBlock": "0.0.0.0/0"}
    assert aws.invoke("ec2/getRoute:getRoute", **table)["natGatewayId"] == "nat-1"
    refused("NotFound", aws.invoke, "ec2/getRoute:getRoute", routeTableId=own, destinationCidrBlock="::/0")


def test_they_are_deleted_with_the_vpc(aws: Driver, vpc: dict[str, Any]) -> None:
    route: dict[str, Any] = {"destinationCidrBlock": "10.8.0.0/16", "natGatewayId": "nat-1"}
    aws.create("ec2/route:Route", "r", routeTableId=vpc["mainRouteTableId"], **route)
    aws.delete("r")
    aws.delete("vpc")
    assert aws.state.count() == 0


def test_an_adopted_group_loses_its_rules_and_those_of_others(aws: Driver, vpc: dict[str, Any]) -> None:
    group, peer = vpc["defaultSecurityGroupId"], {"cidrBlocks": ["10.0.0.0/8"]}
    rule: dict[str, Any] = {"type": "ingress", "protocol": "tcp", "fromPort": 22, "toPort": 22, **peer}
    aws.create(RULE, "rule", securityGroupId=group, **rule)
    made = aws.create("ec2/defaultSecurityGroup:DefaultSecurityGroup", "d", vpcId=vpc["id"])
    assert made["id"] == group and aws.refresh("rule") is None
    plain = aws.get(GROUP, group)
    assert plain is not None and plain["ingress"] == plain["egress"] == []
    aws.delete("d")
    assert aws.get(GROUP, group) is not None


@pytest.mark.parametrize(
    ("token", "name", "given"),
    [
        ("ec2/defaultRouteTable:DefaultRouteTable", "mainRouteTableId", "defaultRouteTableId"),
        ("ec2/defaultNetworkAcl:DefaultNetworkAcl", "defaultNetworkAclId", "defaultNetworkAclId"),
    ],
)
def test_tables_and_lists_are_adopted_under_their_id(
    aws: Driver, vpc: dict[str, Any], token: str, name: str, given: str
) -> None:
    made = aws.create(token, "d", **{given: vpc[name]})
    assert (made["id"], made["vpcId"]) == (vpc[name], vpc["id"])


def test_the_default_vpc_and_its_subnets_are_adopted(aws: Driver) -> None:
    made = aws.create("ec2/defaultVpc:DefaultVpc", "d")
    assert made["id"] == aws.invoke("ec2/getVpc:getVpc", default=True)["id"]
    subnet = aws.create("ec2/defaultSubnet:DefaultSubnet", "s", availabilityZone="us-east-1a")
    assert subnet["vpcId"] == made["id"] and aws.get("ec2/subnet:Subnet", subnet["id"]) is not None
    refused(
        "InvalidParameterValue", aws.create, "ec2/defaultSubnet:DefaultSubnet", availabilityZone="us-east-1q"
    )
    table = aws.get(TABLE, made["mainRouteTableId"])
    assert table is not None and table["vpcId"] == made["id"]


@pytest.mark.parametrize(("protocol", "kept"), [("TCP", "tcp"), ("6", "tcp"), ("ALL", "-1"), ("47", "47")])
def test_protocols_are_kept_as_the_provider_names_them(
    aws: Driver, vpc: dict[str, Any], protocol: str, kept: str
) -> None:
    ports = {"fromPort": 0, "toPort": 0, "cidrBlocks": ["10.0.0.0/8"]}
    group = aws.create(GROUP, "g", vpcId=vpc["id"], ingress=[{"protocol": protocol, **ports}])
    assert group["ingress"][0]["protocol"] == kept
    rule = {"type": "egress", "securityGroupId": group["id"], "protocol": protocol, **ports}
    assert aws.create(RULE, "r", **rule)["protocol"] == kept
    assert aws.diff("r", **{**rule, "protocol": kept}).changed == ()


def test_an_instance_shows_what_its_launch_template_says(aws: Driver) -> None:
    options = {"httpTokens": "required"}
    template: dict[str, Any] = {
        "instanceType": "g6.xlarge",
        "imageId": "ami-1",
        "metadataOptions": options,
        "keyName": "k",
    }
    key = aws.create("ec2/launchTemplate:LaunchTemplate", "lt", name="lt-1", **template)["id"]
    made = aws.create("ec2/instance:Instance", "i", launchTemplate={"id": key, "version": "$Latest"})
    assert (made["instanceType"], made["ami"], made["keyName"]) == ("g6.xlarge", "ami-1", "k")
    assert made["metadataOptions"]["httpTokens"] == "required" and made["metadataOptions"]["httpEndpoint"]
    own = aws.create("ec2/instance:Instance", "j", launchTemplate={"name": "lt-1"}, instanceType="g6.2xlarge")
    assert own["instanceType"] == "g6.2xlarge"
    assert aws.diff("i", launchTemplate={"id": key, "version": "$Latest"}).changed == ()
