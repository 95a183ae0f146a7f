"""Networks of recorded states, created in the emulation.

What differs from the property's name is written down; the rest is found by name (see `modelled`).
"""

from collections.abc import Mapping
from typing import Any

from tests.policies.sources.live.remade.account import Maker, Props, Remade, created
from tests.policies.sources.live.remade.modelled import reported

_NAMED = {"GroupName": "name"}


def _vpc(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    made = created("ec2.CreateVpc", "Vpc.VpcId")(remade, one, tags)
    on = {"Value": bool(one.get("enableDnsHostnames"))}
    remade.call("ec2.ModifyVpcAttribute", {}, VpcId=made, EnableDnsHostnames=on)
    return made


def _subnet(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    made = created("ec2.CreateSubnet", "Subnet.SubnetId")(remade, one, tags)
    if one.get("mapPublicIpOnLaunch"):
        remade.call("ec2.ModifySubnetAttribute", {}, SubnetId=made, MapPublicIpOnLaunch={"Value": True})
    return made


def _default_group(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    """The provider takes the one that is there, and removes its rules."""
    wanted = [{"Name": "vpc-id", "Values": [one["vpcId"]]}, {"Name": "group-name", "Values": ["default"]}]
    (group,) = remade.call("ec2.DescribeSecurityGroups", {}, Filters=wanted)["SecurityGroups"]
    remade.label(group["GroupId"], tags)
    _close(remade, group["GroupId"])
    return str(group["GroupId"])


def _group(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    """A group without the rule that EC2 adds: the provider revokes it."""
    described = {"description": "Managed by Pulumi", **one}
    made = created("ec2.CreateSecurityGroup", "GroupId", _NAMED)(remade, described, tags)
    _close(remade, made)
    return made


def _close(remade: Remade, group: str) -> None:
    wanted = [{"Name": "group-id", "Values": [group]}]
    rules = remade.call("ec2.DescribeSecurityGroupRules", {}, Filters=wanted)["SecurityGroupRules"]
    for way, outgoing in (("Ingress", False), ("Egress", True)):
        ids = [rule["SecurityGroupRuleId"] for rule in rules if rule["IsEgress"] is outgoing]
        if ids:
            remade.call(f"ec2.RevokeSecurityGroup{way}", {}, GroupId=group, SecurityGroupRuleIds=ids)


def _rule(way: str) -> Maker:
    def make(remade: Remade, one: Props, tags: dict[str, str]) -> str:
        permission = reported("ec2", "IpPermission", one)
        note = {"Description": one["description"]} if one.get("description") else {}
        if "cidrIpv4" in one:
            permission["IpRanges"] = [{"CidrIp": one["cidrIpv4"], **note}]
        if "cidrIpv6" in one:
            permission["Ipv6Ranges"] = [{"CidrIpv6": one["cidrIpv6"], **note}]
        if "referencedSecurityGroupId" in one:
            permission["UserIdGroupPairs"] = [{"GroupId": one["referencedSecurityGroupId"], **note}]
        given: dict[str, Any] = {"GroupId": one["securityGroupId"], "IpPermissions": [permission]}
        made = remade.call(f"ec2.AuthorizeSecurityGroup{way}", {}, **given)
        chosen = str(made["SecurityGroupRules"][0]["SecurityGroupRuleId"])
        remade.label(chosen, tags)
        return chosen

    return make


def _gateway(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    made = created("ec2.CreateInternetGateway", "InternetGateway.InternetGatewayId")(remade, one, tags)
    if one.get("vpcId"):
        remade.call("ec2.AttachInternetGateway", one, InternetGatewayId=made)
    return made


def _flow_log(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    kind, of = ("VPC", "vpcId") if "vpcId" in one else ("Subnet", "subnetId")
    names = {"DeliverLogsPermissionArn": "iamRoleArn"}
    given: dict[str, Any] = {"ResourceType": kind, "ResourceIds": [one[of]]}
    answer = remade.call("ec2.CreateFlowLogs", one, names=names, **given)
    assert not answer["Unsuccessful"], answer
    remade.label(answer["FlowLogIds"][0], tags)
    return str(answer["FlowLogIds"][0])


_TEMPLATE = {
    "Groups": "securityGroups", "SecurityGroupIds": "vpcSecurityGroupIds", "Key": "key", "Version": "version",
}  # fmt: skip


def _template(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    data = reported("ec2", "RequestLaunchTemplateData", one, _TEMPLATE)
    data["TagSpecifications"] = [
        {
            "ResourceType": row["resourceType"],
            "Tags": [{"Key": key, "Value": value} for key, value in row.get("tags", {}).items()],
        }
        for row in one.get("tagSpecifications") or ()
    ]
    given: dict[str, Any] = {"LaunchTemplateName": one["name"], "LaunchTemplateData": data}
    made = remade.call("ec2.CreateLaunchTemplate", {}, **given)["LaunchTemplate"]["LaunchTemplateId"]
    remade.label(made, tags)
    return str(made)


MAKERS: Mapping[str, Maker] = {
    "aws:ec2/vpc:Vpc": _vpc,
    "aws:ec2/subnet:Subnet": _subnet,
    "aws:ec2/securityGroup:SecurityGroup": _group,
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": _default_group,
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _rule("Ingress"),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _rule("Egress"),
    "aws:ec2/routeTable:RouteTable": created("ec2.CreateRouteTable", "RouteTable.RouteTableId"),
    "aws:ec2/internetGateway:InternetGateway": _gateway,
    "aws:ec2/eip:Eip": created("ec2.AllocateAddress", "AllocationId"),
    "aws:ec2/natGateway:NatGateway": created("ec2.CreateNatGateway", "NatGateway.NatGatewayId"),
    "aws:ec2/vpcEndpoint:VpcEndpoint": created("ec2.CreateVpcEndpoint", "VpcEndpoint.VpcEndpointId"),
    "aws:ec2/flowLog:FlowLog": _flow_log,
    "aws:ec2/launchTemplate:LaunchTemplate": _template,
    "aws:ebs/volume:Volume": created("ec2.CreateVolume", "VolumeId", {"VolumeType": "type"}),
}
