"""Internet gateways, NAT gateways and routes."""

import ipaddress
from collections.abc import Iterator

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import named
from rehearsal.core.model import Properties
from rehearsal.core.properties import each, known
from rehearsal.core.rules.model import Violation

_GATEWAY, _NAT = "aws:ec2/internetGateway:InternetGateway", "aws:ec2/natGateway:NatGateway"
_ROUTE = "aws:ec2/route:Route"
_TABLE = "aws:ec2/routeTable:RouteTable"
_BLOCKS = "ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation"
# Targets inside of the VPC, to which its own addresses may lead.
_INSIDE = ("networkInterfaceId", "vpcEndpointId", "natGatewayId", "transitGatewayId")
_DESTINATIONS = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")


@BOOK.rule_around(
    "AWS-VPC-013",
    _GATEWAY,
    source="moto 5.2.5 moto/ec2/models/internet_gateways.py and moto/ec2/exceptions.py",
)
def one_gateway_per_vpc(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A VPC has at most one internet gateway."""
    vpc = inputs.get("vpcId")
    for other in site.others("ec2/internetGateway:InternetGateway") if known(vpc) else ():
        if other.outputs.get("vpcId") == vpc:
            yield Violation(
                "vpcId",
                f"resource {vpc} is already attached to an internet gateway",
                f"It is {named(other)}.",
                "Resource.AlreadyAssociated",
            )


@BOOK.rule_around("AWS-VPC-016", _NAT, source="giantswarm/aws-operator pull request 1234")
def public_nat_needs_a_gateway(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A public NAT gateway needs an internet gateway in its VPC."""
    subnet = site.find(inputs.get("subnetId"), "ec2/subnet:Subnet")
    if subnet is None or inputs.get("connectivityType", "public") != "public" or site.preview:
        return
    vpc = subnet.outputs["vpcId"]
    gateways = site.all("ec2/internetGateway:InternetGateway")
    attachments = site.all("ec2/internetGatewayAttachment:InternetGatewayAttachment")
    if not any(one.outputs.get("vpcId") == vpc for one in (*gateways, *attachments)):
        yield Violation(
            "subnetId",
            f"Network {vpc} has no Internet gateway attached",
            "Create the internet gateway first and let the NAT gateway depend on it.",
            "Gateway.NotAttached",
        )


@BOOK.rule_around("AWS-VPC-019", _ROUTE, source="moto 5.2.5 moto/ec2/models/route_tables.py (create_route)")
def one_route_per_destination(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A route table has one route per destination."""
    table = inputs.get("routeTableId")
    for other in site.others("ec2/route:Route") if known(table) else ():
        for name in _DESTINATIONS:
            value = inputs.get(name)
            taken = known(value) and other.outputs.get(name) == value
            if taken and other.outputs.get("routeTableId") == table:
                yield Violation(
                    name,
                    f"The route identified by {value} already exists.",
                    f"It is {named(other)}.",
                    "RouteAlreadyExists",
                )


@BOOK.rule_around("AWS-VPC-020", _ROUTE, source="smoketurner/serverless-vpc-plugin issue 147")
def route_within_its_network(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A route leads to an internet gateway of its own VPC."""
    table = site.find(inputs.get("routeTableId"), "ec2/routeTable:RouteTable")
    gateway = site.find(inputs.get("gatewayId"), "ec2/internetGateway:InternetGateway")
    if table and gateway and gateway.outputs.get("vpcId") not in (None, table.outputs.get("vpcId")):
        yield Violation(
            "gatewayId",
            f"route table {table.id} and network gateway {gateway.id} belong to different networks",
            "Use the gateway of the table's VPC.",
            "InvalidParameterValue",
        )


@BOOK.rule_around(
    "AWS-VPC-021",
    _ROUTE,
    _TABLE,
    source="Amazon VPC User Guide, RouteTables (local route; more specific routes lead to a NAT gateway, a "
    "network interface or a Gateway Load Balancer endpoint); botocore 1.44.5 CreateRouteRequest",
)
def no_way_out_for_own_addresses(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A route to a gateway outside is not for addresses of its own VPC: the local route is."""
    table = site.find(inputs.get("routeTableId"), "ec2/routeTable:RouteTable")
    vpc = site.find(table.outputs.get("vpcId") if table else inputs.get("vpcId"), "ec2/vpc:Vpc")
    if vpc is None:
        return
    further = (one.outputs.get("cidrBlock") for one in site.users(vpc, _BLOCKS))
    own = [block for value in (vpc.outputs.get("cidrBlock"), *further) if (block := _ipv4(value))]
    rows = [("destinationCidrBlock", inputs)]
    rows += [
        (f"{path}.cidrBlock", route) for path, route in each(inputs, "routes[]") if isinstance(route, dict)
    ]
    for path, route in rows:
        block = _ipv4(route.get(path.rpartition(".")[2]))
        local = route.get("gatewayId") == "local" or any(route.get(name) is not None for name in _INSIDE)
        if block in own and path == "destinationCidrBlock" and route.get("gatewayId") != "local":
            text = f"The route identified by {block} already exists."
            yield Violation(path, text, "It is the local route of the VPC.", "RouteAlreadyExists")
        elif block and not local and any(block.subnet_of(one) for one in own):
            yield Violation(
                path,
                f"The destination CIDR block {block} is equal to or more specific than one of this VPC's "
                "CIDR blocks. This route can target only an interface or an instance",
                f"Leave it out: addresses of {', '.join(map(str, own))} have the local route.",
                "InvalidParameterValue",
            )


def _ipv4(value: object) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(value) if isinstance(value, str) and "/" in value else None
    except ValueError:
        return None


@BOOK.rule(
    "AWS-VPC-022", _ROUTE, source="botocore 1.44.5 ec2/2016-11-15 CreateRouteRequest; aws/network/network.py"
)
def destination_is_a_network(inputs: Properties) -> Iterator[Violation]:
    """The destination of a route is a range of addresses without host bits."""
    for name, form in (
        ("destinationCidrBlock", ipaddress.IPv4Network),
        ("destinationIpv6CidrBlock", ipaddress.IPv6Network),
    ):
        value = inputs.get(name)
        if not isinstance(value, str) or not value:
            continue
        try:
            fits = "/" in value and form(value) is not None
        except ValueError:
            fits = False
        if not fits:
            message = f"Value ({value}) for parameter {name} is invalid. This is not a valid CIDR block"
            yield Violation(name, message, "", "InvalidParameterValue")
