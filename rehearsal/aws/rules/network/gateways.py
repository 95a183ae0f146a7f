"""Internet gateways, NAT gateways and routes."""

from collections.abc import Iterator

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import named
from rehearsal.core.model import Properties
from rehearsal.core.properties import known
from rehearsal.core.rules.model import Violation

_GATEWAY, _NAT = "aws:ec2/internetGateway:InternetGateway", "aws:ec2/natGateway:NatGateway"
_ROUTE = "aws:ec2/route:Route"
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
