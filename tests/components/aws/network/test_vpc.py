import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.aws.network.vpc import AwsNetwork, AwsNetworkArgs
from infra.errors import UserError
from tests.components.graph import Graph, deploy_graph

ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]


def network(
    *,
    nat_per_zone: bool = False,
    key: str | None = None,
    services: list[str] | None = None,
    load_balancer: bool = False,
) -> Graph:
    args: AwsNetworkArgs = {
        "region": "us-east-1",
        "cidr": "10.0.0.0/16",
        "zones": ZONES,
        "nat_per_zone": nat_per_zone,
        "flow_log_retention_days": 30,
        "interface_endpoints": ["ecr.api", "sts"] if services is None else services,
        "load_balancer": load_balancer,
    }
    if key:
        args["kms_key_arn"] = key

    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = AwsNetwork("dev-aws", args)
        return {
            "vpc": made.vpc_id,
            "private": made.private_subnet_ids,
            "public": made.public_subnet_ids,
            "balancers": made.balancer_subnet_ids,
            "by_zone": made.private_subnet_id_by_zone,
            "efa": made.efa_security_group_id,
            "endpoints": made.endpoint_ids,
        }

    return deploy_graph(program)


def test_a_load_balancer_has_subnets_of_its_own_with_a_way_out_and_no_other_moves(made: Graph) -> None:
    behind = network(load_balancer=True)
    subnets = behind.all("Subnet")
    own = [f"dev-aws-balancer-{zone}" for zone in ZONES]
    assert behind.outputs["balancers"] == [f"{name}-id" for name in own]
    assert {name: row for name, row in subnets.items() if name not in own} == made.all("Subnet")
    tables = {row["subnetId"]: row["routeTableId"] for row in behind.all("RouteTableAssociation").values()}
    for zone in ZONES:
        private = tables[f"dev-aws-private-{zone}-id"]
        assert tables[f"dev-aws-balancer-{zone}-id"] == private, "the identity provider is on the internet"


@pytest.fixture(scope="module")
def made() -> Graph:
    return network()


def test_every_zone_has_a_private_and_a_public_subnet_marked_for_load_balancers(made: Graph) -> None:
    subnets = made.all("Subnet")

    assert made.outputs["private"] == [f"dev-aws-private-{zone}-id" for zone in ZONES]
    assert made.outputs["public"] == [f"dev-aws-public-{zone}-id" for zone in ZONES]
    assert made.outputs["by_zone"]["us-east-1b"] == "dev-aws-private-us-east-1b-id"
    for zone in ZONES:
        private, public = subnets[f"dev-aws-private-{zone}"], subnets[f"dev-aws-public-{zone}"]
        assert private["availabilityZone"] == public["availabilityZone"] == zone
        assert private["tags"]["kubernetes.io/role/internal-elb"] == "1"
        assert public["tags"]["kubernetes.io/role/elb"] == "1"
        assert not private["mapPublicIpOnLaunch"]
        assert not public["mapPublicIpOnLaunch"]


def test_pods_have_reserved_space_for_their_prefixes(made: Graph) -> None:
    reservation = made.find("SubnetCidrReservation", "us-east-1b")

    assert reservation["reservationType"] == "prefix"
    assert reservation["cidrBlock"] == "10.0.48.0/20"


def test_one_nat_gateway_serves_all_zones_unless_each_is_to_have_its_own(made: Graph) -> None:
    routes = {name: r["natGatewayId"] for name, r in made.all("Route").items() if "natGatewayId" in r}
    assert list(made.all("NatGateway")) == ["dev-aws-nat-us-east-1a"]
    assert len(routes) == 3
    assert set(routes.values()) == {"dev-aws-nat-us-east-1a-id"}

    each = network(nat_per_zone=True)
    for zone in ZONES:
        assert each.find("Route", f"private-{zone}-nat")["natGatewayId"] == f"dev-aws-nat-{zone}-id"
        assert each.find("NatGateway", zone)["subnetId"] == f"dev-aws-public-{zone}-id"


def test_who_uses_a_private_subnet_waits_for_its_way_out() -> None:
    class Consumer(pulumi.CustomResource):
        def __init__(self, subnet: pulumi.Output[str]) -> None:
            super().__init__("test:index:Consumer", "consumer", {"subnet": subnet})

    def program() -> Mapping[str, pulumi.Input[Any]]:
        args: AwsNetworkArgs = {
            "region": "us-east-1",
            "cidr": "10.0.0.0/16",
            "zones": ZONES,
            "nat_per_zone": False,
            "flow_log_retention_days": 30,
            "interface_endpoints": [],
        }
        made = AwsNetwork("net", args)
        return {"urn": Consumer(made.private_subnet_id_by_zone["us-east-1b"]).urn}

    before = deploy_graph(program).waits_for("Consumer:consumer")
    assert {"Route:net-private-us-east-1b-nat", "RouteTableAssociation:net-private-us-east-1b"} <= before
    assert {
        "NatGateway:net-nat-us-east-1a",
        "InternetGateway:net-internet",
        "Route:net-public-internet",
        "RouteTableAssociation:net-public-us-east-1a",
    } <= before


def test_s3_is_reached_without_nat_from_every_private_subnet(made: Graph) -> None:
    s3 = made.find("VpcEndpoint", "-s3")

    assert s3["vpcEndpointType"] == "Gateway"
    assert s3["serviceName"] == "com.amazonaws.us-east-1.s3"
    assert set(s3["routeTableIds"]) == {f"dev-aws-private-{zone}-id" for zone in ZONES}


def test_interface_endpoints_answer_private_names_for_the_vpc_only(made: Graph) -> None:
    endpoint = made.find("VpcEndpoint", "-ecr-api")
    rule = made.find("SecurityGroupIngressRule", "-endpoints-https")

    assert endpoint["serviceName"] == "com.amazonaws.us-east-1.ecr.api"
    assert endpoint["privateDnsEnabled"] is True
    assert len(endpoint["subnetIds"]) == 3
    assert endpoint["securityGroupIds"] == ["dev-aws-endpoints-id"]
    assert (rule["cidrIpv4"], rule["fromPort"], rule["toPort"]) == ("10.0.0.0/16", 443, 443)
    assert len(made.outputs["endpoints"]) == 3


def test_without_interface_endpoints_there_is_no_group_for_them() -> None:
    bare = network(services=[])

    assert list(bare.all("VpcEndpoint")) == ["dev-aws-s3"]
    assert "dev-aws-endpoints" not in bare.all("SecurityGroup")


def test_the_default_security_group_lets_nothing_through(made: Graph) -> None:
    group = made.find("DefaultSecurityGroup")

    assert group["ingress"] == []
    assert group["egress"] == []


def test_the_efa_group_lets_all_traffic_in_and_out_to_itself_by_id(made: Graph) -> None:
    group = made.outputs["efa"]
    for direction in ("Ingress", "Egress"):
        rule = made.find(f"SecurityGroup{direction}Rule", "-self")
        assert rule["securityGroupId"] == rule["referencedSecurityGroupId"] == group
        assert rule["ipProtocol"] == "-1"
        assert "cidrIpv4" not in rule

    internet = made.find("SecurityGroupEgressRule", "-to-internet")
    assert (internet["cidrIpv4"], internet["fromPort"], internet["toPort"]) == ("0.0.0.0/0", 443, 443)
    assert "ingress" not in made.find("SecurityGroup", "-efa")
    assert made.find("SecurityGroup", "-efa")["revokeRulesOnDelete"] is True


def test_nothing_lets_the_world_in(made: Graph) -> None:
    assert all(rule.get("cidrIpv4") != "0.0.0.0/0" for rule in made.all("SecurityGroupIngressRule").values())


def test_flow_logs_go_to_an_encrypted_group_through_a_role_only_this_account_can_use(made: Graph) -> None:
    log, group, key = made.find("FlowLog"), made.find("LogGroup"), made.find("Key")
    trust = json.loads(made.find("Role")["assumeRolePolicy"])["Statement"][0]
    allowed = json.loads(made.find("RolePolicy")["policy"])["Statement"]

    assert log["trafficType"] == "ALL"
    assert group["retentionInDays"] == 30
    assert group["kmsKeyId"].endswith("dev-aws-flow-logs-key")
    assert key["enableKeyRotation"] is True
    assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": "111122223333"}
    assert trust["Condition"]["ArnLike"] == {
        "aws:SourceArn": "arn:aws:ec2:us-east-1:111122223333:vpc-flow-log/*"
    }
    assert not any("CreateLogGroup" in action for statement in allowed for action in statement["Action"])
    assert [s["Action"] for s in allowed if s["Resource"] == ["*"]] == [["logs:DescribeLogGroups"]]


def test_the_key_is_open_to_cloudwatch_logs_for_this_group_alone(made: Graph) -> None:
    statement = json.loads(made.find("Key")["policy"])["Statement"][1]

    assert statement["Principal"] == {"Service": "logs.us-east-1.amazonaws.com"}
    assert statement["Condition"]["ArnEquals"] == {
        "kms:EncryptionContext:aws:logs:arn": (
            f"arn:aws:logs:us-east-1:111122223333:log-group:{made.find('LogGroup')['name']}"
        )
    }


def test_a_key_passed_in_is_used_and_none_made() -> None:
    shared = network(key="arn:aws:kms:us-east-1:111122223333:key/shared")

    assert shared.all("Key") == {}
    assert shared.find("LogGroup")["kmsKeyId"] == "arn:aws:kms:us-east-1:111122223333:key/shared"


def test_zones_of_another_region_are_refused_before_anything_is_made() -> None:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        args: AwsNetworkArgs = {
            "region": "us-east-1",
            "cidr": "10.0.0.0/16",
            "zones": ["us-east-1a", "eu-west-1b"],
            "nat_per_zone": False,
            "flow_log_retention_days": 30,
            "interface_endpoints": [],
        }
        AwsNetwork("net", args)
        return {}

    with pytest.raises(UserError, match=r"zones\[1\].*zone-not-in-region"):
        deploy_graph(program)
