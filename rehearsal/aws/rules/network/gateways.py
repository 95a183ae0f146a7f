"""Internet gateways, NAT gateways and routes."""

from collections.abc import Iterator

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import given, named
from rehearsal.core.model import Properties
from rehearsal.core.properties import known
from rehearsal.core.rules.model import Violation

_GATEWAY, _NAT = "aws:ec2/internetGateway:InternetGateway", "aws:ec2/natGateway:NatGateway"
_ROUTE = "aws:ec2/route:Route"
_NATS = "pulumi-aws 7.51.1 docstring of aws.ec2.NatGateway"
_ROUTES = "pulumi-aws 7.51.1 docstring of aws.ec2.Route"
_DESTINATIONS = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")
_TARGETS = (
    "carrierGatewayId",
    "coreNetworkArn",
    "egressOnlyGatewayId",
    "gatewayId",
    "localGatewayId",
    "natGatewayId",
    "networkInterfaceId",
    "odbNetworkArn",
    "transitGatewayId",
    "vpcEndpointId",
    "vpcPeeringConnectionId",
)


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


@BOOK.rule("AWS-VPC-014", _NAT, source=_NATS)
def public_nat_needs_an_address(inputs: Properties) -> Iterator[Violation]:
    """A public zonal NAT gateway needs an elastic address."""
    public = inputs.get("connectivityType", "public") == "public"
    zonal = inputs.get("availabilityMode", "zonal") == "zonal"
    if public and zonal and "allocationId" not in inputs:
        yield Violation("allocationId", "a public NAT gateway needs an allocationId", "Create an Eip for it.")


@BOOK.rule("AWS-VPC-015", _NAT, source="botocore 1.44.5 ec2/2016-11-15 CreateNatGatewayRequest")
def private_nat_has_no_address(inputs: Properties) -> Iterator[Violation]:
    """A private NAT gateway takes no elastic address."""
    if inputs.get("connectivityType") == "private" and "allocationId" in inputs:
        yield Violation("allocationId", "a private NAT gateway takes no allocationId")


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


@BOOK.rule("AWS-VPC-017", _ROUTE, source=_ROUTES)
def one_destination(inputs: Properties) -> Iterator[Violation]:
    """A route has exactly one destination."""
    if len(given(inputs, *_DESTINATIONS)) != 1:
        yield Violation("", f"a route needs exactly one destination of {', '.join(_DESTINATIONS)}")


@BOOK.rule("AWS-VPC-018", _ROUTE, source=_ROUTES)
def one_target(inputs: Properties) -> Iterator[Violation]:
    """A route has exactly one target."""
    if len(given(inputs, *_TARGETS)) != 1:
        yield Violation("", f"a route needs exactly one target of {', '.join(_TARGETS)}")


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
