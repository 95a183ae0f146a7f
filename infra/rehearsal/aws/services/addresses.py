"""Gateways, public addresses and routes. Source: Amazon EC2 API Reference (actions and error codes)."""

from collections.abc import Iterator

from infra.rehearsal.aws.naming import draw
from infra.rehearsal.aws.site import Hooks, Site, known, refuse
from infra.rehearsal.model import CheckFailure, Properties, RefusalError
from infra.rehearsal.state import Record

_DESTINATIONS = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId")
_TARGETS = (
    "carrierGatewayId",
    "coreNetworkArn",
    "egressOnlyGatewayId",
    "gatewayId",
    "localGatewayId",
    "natGatewayId",
    "networkInterfaceId",
    "transitGatewayId",
    "vpcEndpointId",
    "vpcPeeringConnectionId",
)


def _address(seed: str, *octets: int) -> str:
    """An address that follows from the seed; 198.18.0.0/15 is for benchmarks and belongs to nobody."""
    digits = draw(seed, 4)
    rest = [int(digits[:2], 16), 1 + int(digits[2:], 16) % 254]
    return ".".join(str(octet) for octet in (*octets, *rest))


def _eip_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    address = _address(f"{seed}/public", 198, 18)
    return {
        "publicIp": address,
        "publicDns": f"ec2-{address.replace('.', '-')}.{site.region}.compute.amazonaws.com",
    }


def _admit_gateway(site: Site, inputs: Properties) -> None:
    vpc = inputs.get("vpcId")
    for other in site.others("ec2/internetGateway:InternetGateway"):
        if known(vpc) and other.outputs.get("vpcId") == vpc:
            raise refuse(
                "Resource.AlreadyAssociated",
                f"resource {vpc} is already attached to an internet gateway",
                "vpcId",
                f"It is {other.urn or other.id}.",
            )


def _leave_vpc(site: Site, gateway: Record) -> None:
    vpc = gateway.outputs.get("vpcId")
    for nat in site.all("ec2/natGateway:NatGateway"):
        subnet = site.find(nat.outputs.get("subnetId"), "ec2/subnet:Subnet")
        if subnet is not None and subnet.outputs.get("vpcId") == vpc and nat.outputs.get("publicIp"):
            raise RefusalError(
                "DependencyViolation",
                f"Network {vpc} has some mapped public address(es). "
                "Please unmap those public address(es) before detaching the gateway.",
                f"{nat.urn or nat.id} holds one; let it depend on the internet gateway.",
            )


def _check_nat(inputs: Properties) -> Iterator[CheckFailure]:
    public = inputs.get("connectivityType", "public") == "public"
    regional = inputs.get("availabilityMode") == "regional"
    if public and not regional and inputs.get("allocationId") is None:
        yield CheckFailure("allocationId", "MissingParameter: a public NAT gateway needs an allocationId")
    if not public and inputs.get("allocationId") is not None:
        yield CheckFailure("allocationId", "InvalidParameter: a private NAT gateway takes no allocationId")


def _admit_nat(site: Site, inputs: Properties) -> None:
    subnet = site.find(inputs.get("subnetId"), "ec2/subnet:Subnet")
    if subnet is None or inputs.get("connectivityType", "public") != "public" or site.preview:
        return
    vpc = subnet.outputs["vpcId"]
    gateways = site.all("ec2/internetGateway:InternetGateway")
    attachments = site.all("ec2/internetGatewayAttachment:InternetGatewayAttachment")
    if not any(one.outputs.get("vpcId") == vpc for one in (*gateways, *attachments)):
        raise refuse(
            "Gateway.NotAttached",
            f"Network {vpc} has no Internet gateway attached",
            "subnetId",
            "Create the internet gateway first and let the NAT gateway depend on it.",
        )


def _nat_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    address = site.find(inputs.get("allocationId"), "ec2/eip:Eip")
    return {
        "publicIp": address.outputs["publicIp"] if address else None,
        "privateIp": inputs.get("privateIp") or _address(f"{seed}/private", 10, 0),
    }


def _check_route(inputs: Properties) -> Iterator[CheckFailure]:
    for kind, names in (("destination", _DESTINATIONS), ("target", _TARGETS)):
        if len([name for name in names if name in inputs]) != 1:
            yield CheckFailure(
                "", f"InvalidParameterCombination: a route needs exactly one {kind} of {', '.join(names)}"
            )


def _admit_route(site: Site, inputs: Properties) -> None:
    table = inputs.get("routeTableId")
    for other in site.others("ec2/route:Route"):
        for name in _DESTINATIONS:
            value = inputs.get(name)
            if (
                known(value)
                and other.outputs.get(name) == value
                and other.outputs.get("routeTableId") == table
            ):
                raise refuse(
                    "RouteAlreadyExists",
                    f"The route identified by {value} already exists.",
                    name,
                    f"It is {other.urn or other.id}.",
                )
    home = site.find(table, "ec2/routeTable:RouteTable")
    gateway = site.find(inputs.get("gatewayId"), "ec2/internetGateway:InternetGateway")
    if home and gateway and gateway.outputs.get("vpcId") not in (None, home.outputs.get("vpcId")):
        raise refuse(
            "InvalidParameterValue",
            f"route table {home.id} and network gateway {gateway.id} belong to different networks",
            "gatewayId",
        )


HOOKS = {
    "ec2/eip:Eip": Hooks(outputs=_eip_outputs),
    "ec2/internetGateway:InternetGateway": Hooks(admit=_admit_gateway, deleting=_leave_vpc),
    "ec2/natGateway:NatGateway": Hooks(check=_check_nat, admit=_admit_nat, outputs=_nat_outputs),
    "ec2/route:Route": Hooks(check=_check_route, admit=_admit_route),
}
