"""Associations, routes and entries of route tables, network ACLs and security groups, as lookups show them.

Source: botocore 1.44.5 ec2/2016-11-15 DescribeRouteTables, DescribeNetworkAcls, DescribeSecurityGroups;
hashicorp/terraform-provider-aws internal/service/ec2/vpc_route_table_data_source.go (attributes).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rehearsal.aws.site import Site
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, Record, RefusalError

TABLE, _ACL = "aws:ec2/routeTable:RouteTable", "aws:ec2/networkAcl:NetworkAcl"
_OPTIONS = "aws:ec2/vpcDhcpOptions:VpcDhcpOptions"
_GROUP, _VPC = "aws:ec2/securityGroup:SecurityGroup", "ec2/vpc:Vpc"
_MAIN = "ec2/mainRouteTableAssociation:MainRouteTableAssociation"
_SUBNETS = "ec2/routeTableAssociation:RouteTableAssociation"
_IDS = {TABLE: "route-table-id", _ACL: "network-acl-id", _OPTIONS: "dhcp-options-id"}
# Property of a separate route -> that of a route in a table.
_DESTINATIONS = {
    "destinationCidrBlock": "cidrBlock",
    "destinationIpv6CidrBlock": "ipv6CidrBlock",
    "destinationPrefixListId": "destinationPrefixListId",
}
_TARGETS = (
    "carrierGatewayId", "coreNetworkArn", "egressOnlyGatewayId", "gatewayId", "instanceId", "localGatewayId",
    "natGatewayId", "networkInterfaceId", "transitGatewayId", "vpcEndpointId", "vpcPeeringConnectionId",
)  # fmt: skip
# Part of a filter's name after `ip-permission.` -> properties of a block.
_PERMISSIONS = {
    "cidr": ("cidrBlocks",),
    "ipv6-cidr": ("ipv6CidrBlocks",),
    "prefix-list-id": ("prefixListIds",),
    "group-id": ("securityGroups",),
    "protocol": ("protocol",),
    "from-port": ("fromPort",),
    "to-port": ("toPort",),
}


def own_id(record: Record) -> str:
    """The filter that names the id of a resource by its type."""
    return _IDS.get(record.type, f"{_dashed(record.type.rpartition(':')[2])}-id")


def values(site: Site, record: Record, name: str) -> Iterable[Any]:
    """The values under a filter's name with parts, such as `association.main`; else nothing."""
    part, _, rest = name.partition(".")
    if record.type == _ACL:
        return [_is_default(site, record)] if name == "default" else _of_acl(site, record, name)
    if part == "association" and record.type == TABLE:
        wanted = {"route-table-association-id": "routeTableAssociationId"}.get(rest, _camel(rest))
        return [one.get(wanted) for one in associations(site, record)]
    if part == "route" and record.type == TABLE:
        wanted = _DESTINATIONS.get(_camel(rest), _camel(rest))
        return [one.get(wanted) for one in routes(site, record)]
    if record.type == _GROUP:
        way = "egress" if part == "egress" else "ingress"
        blocks = [one for one in record.outputs.get(way) or () if isinstance(one, Mapping)]
        return _flat(one.get(key) for one in blocks for key in _PERMISSIONS.get(name.rpartition(".")[2], ()))
    if name == "attachment.vpc-id":
        return [record.outputs.get("vpcId")]
    return ["available"] if name == "attachment.state" and record.outputs.get("vpcId") else []


def associations(site: Site, table: Record) -> list[Properties]:
    """The associations of a route table: as the main one with its VPC, and with subnets and gateways."""
    found = []
    if _main_of(site, table) == table.id:
        link = f"rtbassoc-{draw(f'{table.id}/main', 17)}"
        found.append({"main": True, "routeTableAssociationId": link, "routeTableId": table.id})
    for one in site.all(_SUBNETS):
        if one.outputs.get("routeTableId") == table.id:
            ids = {"routeTableAssociationId": one.id, "routeTableId": table.id}
            ends = {
                name: one.outputs.get(name) for name in ("subnetId", "gatewayId") if one.outputs.get(name)
            }
            found.append({"main": False, **ids, **ends})
    return found


def routes(site: Site, table: Record) -> list[Properties]:
    """The routes of a table, its own and separate ones; without the local one, as the provider shows them."""
    found = [dict(one) for one in table.outputs.get("routes") or () if isinstance(one, Mapping)]
    for one in site.all("ec2/route:Route"):
        if one.outputs.get("routeTableId") == table.id:
            ends = {new: one.outputs.get(old) for old, new in _DESTINATIONS.items()}
            targets = {name: one.outputs.get(name) for name in _TARGETS}
            found.append({name: value for name, value in {**ends, **targets}.items() if value})
    return found


def of_table(site: Site, table: Record) -> Properties:
    """The attributes of a table that only its lookup has."""
    empty = dict.fromkeys((*_DESTINATIONS.values(), *_TARGETS), "")
    shown = [{**empty, **one} for one in routes(site, table)]
    links = [{"subnetId": "", "gatewayId": "", **one} for one in associations(site, table)]
    return {"routeTableId": table.id, "associations": links, "routes": shown}


def route(site: Site, args: Properties) -> Properties:
    """One route of a table by its destination or target. Raises RefusalError without exactly one."""
    table = site.known_as("ec2/routeTable:RouteTable", args.get("routeTableId"))
    ends = {name: value for name, value in args.items() if name in {*_DESTINATIONS, *_TARGETS} and value}
    wanted = {_DESTINATIONS.get(name, name): value for name, value in ends.items()}
    found = [one for one in routes(site, table) if wanted.items() <= one.items()]
    if len(found) != 1:
        several = "multiple Routes matched" if found else "no matching Route found"
        raise RefusalError("NotFound", f"{several}: {ends} in {table.id}", "Name its destination.")
    shown = {old: found[0].get(new, "") for old, new in _DESTINATIONS.items()}
    targets = {name: found[0].get(name, "") for name in _TARGETS}
    return {
        **args,
        **shown,
        **targets,
        "id": f"r-{table.id}{draw(repr(found[0]), 8)}",
        "routeTableId": table.id,
    }


def _main_of(site: Site, table: Record) -> object:
    """The id of the main route table of the VPC that a table is in."""
    vpc = site.find(table.outputs.get("vpcId"), _VPC)
    for one in site.all(_MAIN):
        if vpc is not None and one.outputs.get("vpcId") == vpc.id:
            return one.outputs.get("routeTableId")
    return vpc.outputs.get("mainRouteTableId") if vpc else None


def _is_default(site: Site, acl: Record) -> bool:
    vpc = site.find(acl.outputs.get("vpcId"), _VPC)
    return vpc is not None and vpc.outputs.get("defaultNetworkAclId") == acl.id


def _of_acl(site: Site, acl: Record, name: str) -> Iterable[Any]:
    if name == "association.subnet-id":
        return _subnets_of(site, acl)
    way = {"entry.egress": "egress"}.get(name, "ingress")
    key = {"rule-number": "ruleNo", "rule-action": "action", "cidr": "cidrBlock"}
    wanted = key.get(name.rpartition(".")[2], _camel(name.rpartition(".")[2]))
    return [one.get(wanted) for one in acl.outputs.get(way) or () if isinstance(one, Mapping)]


def _subnets_of(site: Site, acl: Record) -> Iterator[str]:
    """The subnets of an ACL; the default one has those of the VPC that no other has."""
    elsewhere = {
        subnet
        for one in site.all("ec2/networkAcl:NetworkAcl")
        if one.id != acl.id
        for subnet in one.outputs.get("subnetIds") or ()
    }
    yield from acl.outputs.get("subnetIds") or ()
    if _is_default(site, acl):
        for one in site.all("ec2/subnet:Subnet"):
            if one.outputs.get("vpcId") == acl.outputs.get("vpcId") and one.id not in elsewhere:
                yield one.id


def _flat(found: Iterable[Any]) -> Iterator[Any]:
    for one in found:
        yield from one if isinstance(one, list) else (one,)


def _camel(name: str) -> str:
    return re.sub(r"-(\w)", lambda match: match.group(1).upper(), name)


def _dashed(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"-\1", name).lower()
