"""Routes of a subnet."""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.aws.rules.book import AwsContext
from rehearsal.core.model import Record
from rehearsal.core.properties import each

_TABLE, _ROUTE = "ec2/routeTable:RouteTable", "ec2/route:Route"
_ASSOCIATION = "ec2/routeTableAssociation:RouteTableAssociation"
_MAIN = "ec2/mainRouteTableAssociation:MainRouteTableAssociation"
_EVERYWHERE = ("0.0.0.0/0", "::/0")


def ways_out(site: AwsContext, subnet: Record) -> list[Mapping[str, Any]] | None:
    """The default routes of a subnet; None when its route table was not made by a program."""
    table = _table(site, subnet)
    return None if table is None else [route for route in _routes(site, table) if _leads_out(route)]


def is_public(route: Mapping[str, Any]) -> bool:
    """Return whether a route leads to an internet gateway."""
    return str(route.get("gatewayId") or "").startswith("igw-")


def _table(site: AwsContext, subnet: Record) -> Record | None:
    for one in site.users(subnet, _ASSOCIATION):
        return site.find(one.outputs.get("routeTableId"), _TABLE)
    for one in site.all(_MAIN):
        if one.outputs.get("vpcId") == subnet.outputs.get("vpcId"):
            return site.find(one.outputs.get("routeTableId"), _TABLE)
    return None


def _routes(site: AwsContext, table: Record) -> Iterator[Mapping[str, Any]]:
    yield from (route for _, route in each(table.outputs, "routes[]") if isinstance(route, Mapping))
    yield from (one.outputs for one in site.users(table, _ROUTE))


def _leads_out(route: Mapping[str, Any]) -> bool:
    names = ("destinationCidrBlock", "destinationIpv6CidrBlock", "cidrBlock", "ipv6CidrBlock")
    return any(route.get(name) in _EVERYWHERE for name in names)
