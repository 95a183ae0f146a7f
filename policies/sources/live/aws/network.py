"""Networks: VPCs, subnets, security groups, endpoints, NAT gateways, flow logs.

Shapes: internal/service/ec2/{vpc_,vpc_subnet,vpc_security_group,vpc_endpoint,vpc_nat_gateway,vpc_flow_log}.go
of terraform-provider-aws.
"""

from typing import Any

from policies.sources.live.mapping import Joined, LiveKind, Shape, View, same
from policies.sources.live.queries import ApiQuery

QUERIES = (
    ApiQuery("ec2", "DescribeVpcs", "Vpcs"),
    ApiQuery("ec2", "DescribeVpcAttribute", given={"Attribute": "enableDnsHostnames"},
             of="ec2.DescribeVpcs", by={"VpcId": "VpcId"}, label="hostnames"),
    ApiQuery("ec2", "DescribeSubnets", "Subnets"),
    ApiQuery("ec2", "DescribeSecurityGroups", "SecurityGroups"),
    ApiQuery("ec2", "DescribeSecurityGroupRules", "SecurityGroupRules"),
    ApiQuery("ec2", "DescribeVpcEndpoints", "VpcEndpoints"),
    ApiQuery("ec2", "DescribeNatGateways", "NatGateways"),
    ApiQuery("ec2", "DescribeFlowLogs", "FlowLogs"),
)  # fmt: skip


def _arn(kind: str, id: str) -> str:
    return f"arn:{{partition}}:ec2:{{region}}:{{account}}:{kind}/{{{id}}}"


def _starts(path: str, *starts: str) -> Any:
    return lambda view: str(view.at(path)).startswith(starts)


def _is(path: str, value: Any) -> Any:
    return lambda view: view.at(path) == value


def _isnt(path: str, *values: Any) -> Any:
    return lambda view: view.at(path) not in values


def _logged(prefix: str) -> Any:
    def read(view: View) -> Any:
        value = view.at("ResourceId")
        return value if str(value).startswith(prefix) else None

    return read


def _referenced(view: View) -> Any:
    """`ACCOUNT/GROUP` for a group of another account (flattenReferencedSecurityGroup)."""
    group, user = view.at("ReferencedGroupInfo.GroupId"), view.at("ReferencedGroupInfo.UserId")
    return f"{user}/{group}" if group and user and user != view.at("account") else group


_RULE: Shape = {
    **same("SecurityGroupRuleId", "IpProtocol", "CidrIpv4", "CidrIpv6", "PrefixListId", "Description"),
    "securityGroupId": "GroupId",
    # A rule for all protocols has no ports: the provider omits them (`-1` in the answer).
    "fromPort": lambda view: None if view.at("IpProtocol") == "-1" else view.at("FromPort"),
    "toPort": lambda view: None if view.at("IpProtocol") == "-1" else view.at("ToPort"),
    "referencedSecurityGroupId": _referenced,
}


def _rule(way: str, outgoing: bool) -> LiveKind:
    return LiveKind(
        f"aws:vpc/securityGroup{way}Rule:SecurityGroup{way}Rule",
        "ec2.DescribeSecurityGroupRules",
        "{SecurityGroupRuleId}",
        _RULE,
        arn=_arn("security-group-rule", "SecurityGroupRuleId"),
        tags="Tags",
        when=_is("IsEgress", outgoing),
    )


_GROUP = {"description": "Description", "name": "GroupName", "ownerId": "OwnerId", "vpcId": "VpcId"}


def _group(kind: str, when: Any) -> LiveKind:
    return LiveKind(
        kind,
        "ec2.DescribeSecurityGroups",
        "{GroupId}",
        _GROUP,
        name="{GroupName}",
        arn=_arn("security-group", "GroupId"),
        tags="Tags",
        when=when,
    )


KINDS = (
    LiveKind(
        "aws:ec2/vpc:Vpc",
        "ec2.DescribeVpcs",
        "{VpcId}",
        {
            **same("CidrBlock", "DhcpOptionsId", "InstanceTenancy", "OwnerId"),
            "enableDnsHostnames": "hostnames.EnableDnsHostnames.Value",
        },
        arn=_arn("vpc", "VpcId"),
        tags="Tags",
        joined={"hostnames": Joined("ec2.DescribeVpcAttribute/hostnames", {"VpcId": "VpcId"})},
    ),
    LiveKind(
        "aws:ec2/subnet:Subnet",
        "ec2.DescribeSubnets",
        "{SubnetId}",
        {
            **same("AssignIpv6AddressOnCreation", "AvailabilityZone", "AvailabilityZoneId", "CidrBlock"),
            **same("MapPublicIpOnLaunch", "OwnerId", "VpcId"),
        },
        arn=_arn("subnet", "SubnetId"),
        tags="Tags",
    ),
    _group("aws:ec2/securityGroup:SecurityGroup", _isnt("GroupName", "default")),
    _group("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", _is("GroupName", "default")),
    _rule("Ingress", False),
    _rule("Egress", True),
    LiveKind(
        "aws:ec2/vpcEndpoint:VpcEndpoint",
        "ec2.DescribeVpcEndpoints",
        "{VpcEndpointId}",
        {
            **same("IpAddressType", "PrivateDnsEnabled", "RouteTableIds", "ServiceName", "State"),
            **same("SubnetIds", "VpcEndpointType", "VpcId"),
            "policy": "PolicyDocument",
            "securityGroupIds": lambda view: [one.get("GroupId") for one in view.at("Groups") or ()] or None,
        },
        arn=_arn("vpc-endpoint", "VpcEndpointId"),
        tags="Tags",
        when=_isnt("State", "deleted", "deleting", "Deleted", "Deleting"),
    ),
    LiveKind(
        "aws:ec2/natGateway:NatGateway",
        "ec2.DescribeNatGateways",
        "{NatGatewayId}",
        same("AvailabilityMode", "ConnectivityType", "SubnetId", "VpcId"),
        tags="Tags",
        when=_isnt("State", "deleted", "deleting", "failed"),
    ),
    LiveKind(
        "aws:ec2/flowLog:FlowLog",
        "ec2.DescribeFlowLogs",
        "{FlowLogId}",
        {
            "vpcId": _logged("vpc-"),
            "subnetId": _logged("subnet-"),
            "eniId": _logged("eni-"),
            "iamRoleArn": "DeliverLogsPermissionArn",
            **same("LogDestination", "LogDestinationType", "MaxAggregationInterval", "TrafficType"),
        },
        arn=_arn("vpc-flow-log", "FlowLogId"),
        tags="Tags",
    ),
)
