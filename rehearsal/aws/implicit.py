"""Parts of every VPC from its beginning: a main route table, a network ACL and a security group.

Source: Amazon VPC User Guide, "Default VPC components", "Route table concepts" (main route table), "Default
network ACL", "Default security groups for your VPCs" (rules); botocore 1.44.5 ec2/2016-11-15 CreateVpc.
"""

from typing import Any

from rehearsal.aws.site import PACKAGE
from rehearsal.aws.table import TABLE
from rehearsal.core.emulation.site import OWNER
from rehearsal.core.emulation.templates import expand
from rehearsal.core.model import Properties, Record
from rehearsal.core.state import State

GROUP, TABLE_TYPE = "aws:ec2/securityGroup:SecurityGroup", "aws:ec2/routeTable:RouteTable"
ACL = "aws:ec2/networkAcl:NetworkAcl"
_OPTIONS = "aws:ec2/vpcDhcpOptions:VpcDhcpOptions"
_OPEN = {"protocol": "-1", "fromPort": 0, "toPort": 0}
_ENTRY = {**_OPEN, "ruleNo": 100, "action": "allow", "cidrBlock": "0.0.0.0/0"}
# Property of the VPC with the id -> type, and what it is like.
_CHILDREN: dict[str, tuple[str, dict[str, Any]]] = {
    "defaultSecurityGroupId": (
        GROUP,
        {
            "name": "default",
            "description": "default VPC security group",
            "ingress": [{**_OPEN, "self": True}],
            "egress": [{**_OPEN, "cidrBlocks": ["0.0.0.0/0"]}],
        },
    ),
    "mainRouteTableId": (TABLE_TYPE, {"routes": [], "propagatingVgws": []}),
    "dhcpOptionsId": (_OPTIONS, {"domainNameServers": ["AmazonProvidedDNS"]}),
    "defaultNetworkAclId": (ACL, {"ingress": [_ENTRY], "egress": [_ENTRY], "subnetIds": []}),
}


def make(state: State, vpc: Record) -> None:
    """Create the children of a VPC whose ids its outputs name; they are deleted with it."""
    for name, (token, content) in _CHILDREN.items():
        key = vpc.outputs.get(name)
        if isinstance(key, str) and key and state.get(PACKAGE, token, vpc.scope, key) is None:
            _make(state, vpc, token, key, content)


def complete(state: State) -> None:
    """Create the children that VPCs lack in homes of versions that made none."""
    with state.transaction():
        for vpc in list(state.find(package=PACKAGE, type="aws:ec2/vpc:Vpc")):
            make(state, vpc)


def of(state: State, vpc: Record, name: str) -> Record | None:
    """The child of a VPC whose id is its property `name`."""
    return state.get(PACKAGE, _CHILDREN[name][0], vpc.scope, str(vpc.outputs.get(name)))


def _make(state: State, vpc: Record, token: str, id: str, content: Properties) -> None:
    account, _, region = vpc.scope.partition("/")
    values = {"account": account, "region": region, "id": id}
    outputs = {
        **content,
        "vpcId": vpc.id,
        "ownerId": account,
        "region": region,
        "arn": expand(TABLE.row(token).link, id, values),
        "tagsAll": {},
    }
    record = state.insert(
        package=PACKAGE, type=token, scope=vpc.scope, id=id, urn="", name="", inputs={}, outputs=outputs
    )
    state.issue(record, {id, outputs["arn"]})
    state.refer(record, {OWNER: vpc})
