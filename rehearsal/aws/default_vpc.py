"""The default VPC of every account and region, created on first use.

Source: Amazon VPC User Guide, "Default VPC components": 172.31.0.0/16 with a /20 subnet in each zone, an
internet gateway, and a default security group.
"""

import ipaddress
from itertools import islice

from rehearsal.aws import facts, implicit
from rehearsal.aws.site import PACKAGE
from rehearsal.aws.table import TABLE
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, Record
from rehearsal.core.state import State

_SPACE = "aws-default-vpc"
_BLOCK = ipaddress.IPv4Network("172.31.0.0/16")
_VPC, _SUBNET = "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"
_GATEWAY = "aws:ec2/internetGateway:InternetGateway"


def ensure(state: State, account: str, region: str) -> None:
    """Create the default VPC of an account and region, once."""
    scope = f"{account}/{region}"
    with state.transaction():
        if state.document(_SPACE, scope):
            return
        state.put_document(_SPACE, scope, True)
        seed = f"default/{scope}"
        route_table = f"rtb-{draw(f'{seed}/routes', 17)}"
        outputs: Properties = {
            **TABLE.rows[_VPC].defaults,
            "cidrBlock": str(_BLOCK),
            "enableDnsHostnames": True,
            "mainRouteTableId": route_table,
            "defaultRouteTableId": route_table,
            "defaultNetworkAclId": f"acl-{draw(f'{seed}/acl', 17)}",
            "dhcpOptionsId": f"dopt-{draw(f'{seed}/dhcp', 17)}",
            "defaultSecurityGroupId": f"sg-{draw(f'{seed}/group', 17)}",
        }
        vpc = _make(state, scope, _VPC, f"vpc-{draw(seed, 17)}", outputs)
        implicit.make(state, vpc)
        _make(state, scope, _GATEWAY, f"igw-{draw(f'{seed}/gateway', 17)}", {}, vpc)
        zones = facts.zones(region)
        for zone, block in zip(zones, islice(_BLOCK.subnets(new_prefix=20), len(zones)), strict=False):
            subnet = {
                **TABLE.rows[_SUBNET].defaults,
                "cidrBlock": str(block),
                "availabilityZone": zone,
                "availabilityZoneId": facts.zone_id(region, zone),
                "mapPublicIpOnLaunch": True,
            }
            _make(state, scope, _SUBNET, f"subnet-{draw(f'{seed}/{zone}', 17)}", subnet, vpc)


def is_default(state: State, record: Record) -> bool:
    """Return whether a VPC or subnet belongs to the account itself, not to a program."""
    return not record.urn and bool(state.document(_SPACE, record.scope))


def _make(  # noqa: PLR0917 - the columns of a record
    state: State, scope: str, token: str, id: str, outputs: Properties, vpc: Record | None = None
) -> Record:
    account, _, region = scope.partition("/")
    kind = {"Vpc": "vpc", "Subnet": "subnet"}
    leaf = kind.get(token.rpartition(":")[2], "internet-gateway")
    inside = {"vpcId": vpc} if vpc else {}
    filled = {
        **outputs,
        **{name: record.id for name, record in inside.items()},
        "arn": f"arn:aws:ec2:{region}:{account}:{leaf}/{id}",
        "ownerId": account,
        "region": region,
        "tagsAll": {},
    }
    record = state.insert(
        package=PACKAGE, type=token, scope=scope, id=id, urn="", name="", inputs={}, outputs=filled
    )
    state.issue(record, {id, filled["arn"]})
    state.refer(record, inside)
    return record
