"""Examples of the rules about the blocks of security groups and the older type of rule."""

from typing import Any

from tests.rehearsal.aws.rules.world import DROP, Example, limit

_GROUP, _RULE = "ec2/securityGroup:SecurityGroup", "ec2/securityGroupRule:SecurityGroupRule"


def _opening(protocol: str = "tcp", first: int = 22, last: int = 22, **more: Any) -> dict[str, Any]:
    block = {"protocol": protocol, "fromPort": first, "toPort": last, "cidrBlocks": ["10.0.0.0/8"], **more}
    return {"ingress": [block]}


EXAMPLES = {
    "AWS-SG-005": Example(_GROUP, "ingress[0].toPort", _opening("-1", 0, 65535), _opening("ALL", 0, 0)),
    "AWS-SG-006": Example(
        _RULE, "protocol", {"protocol": "all"}, {"protocol": "all", "fromPort": 0, "toPort": 0}
    ),
    "AWS-SG-007": Example(_GROUP, "ingress[0].toPort", _opening(last=70000), _opening("icmp", -1, -1)),
    "AWS-SG-008": Example(
        _RULE,
        "cidrBlocks[1]",
        {"cidrBlocks": ["10.0.0.0/8", "10.1.2.3/16"]},
        {"cidrBlocks": ["10.1.2.3/32"], "ipv6CidrBlocks": ["2001:DB8:0::/32"]},
    ),
    "AWS-SG-009": Example(_RULE, "", {"cidrBlocks": DROP}, {"cidrBlocks": DROP, "prefixListIds": ["pl-1"]}),
    "AWS-SG-010": Example(
        _RULE,
        "cidrBlocks",
        {"sourceSecurityGroupId": "$efa"},
        {"sourceSecurityGroupId": "$efa", "cidrBlocks": DROP},
    ),
    "AWS-SG-012": Example(
        "ec2/instance:Instance",
        "vpcSecurityGroupIds[1]",
        {"subnetId": "$a", "vpcSecurityGroupIds": ["$efa", "$other_group"]},
        {"subnetId": "$a", "vpcSecurityGroupIds": ["$efa"]},
    ),
    "AWS-SG-014": Example(
        "ec2/instance:Instance",
        "securityGroups",
        {"subnetId": "$a", "securityGroups": ["$efa"]},
        {"subnetId": "$a", "vpcSecurityGroupIds": ["$efa"]},
    ),
    "AWS-SG-013": limit("ec2/securityGroup:SecurityGroup", "name", "default-web", "default"),
    "AWS-SG-011": Example(_RULE, "cidrBlocks", {"self": True}, {"self": True, "cidrBlocks": DROP}),
    "AWS-LIM-017": limit(_RULE, "type", "egress", "inbound"),
    "AWS-LIM-018": limit(_GROUP, "description", "Door (a, b) of 10.0.0.0/8", "It's open"),
}
