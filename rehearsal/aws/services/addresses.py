"""Gateways, public addresses and routes. Source: Amazon EC2 API Reference (actions and error codes)."""

from collections.abc import Mapping

from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, Record, RefusalError


def _address(seed: str, *octets: int) -> str:
    """An address derived from the seed; 198.18.0.0/15 is reserved for benchmarks."""
    digits = draw(seed, 4)
    rest = [int(digits[:2], 16), 1 + int(digits[2:], 16) % 254]
    return ".".join(str(octet) for octet in (*octets, *rest))


def _eip_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    address = _address(f"{seed}/public", 198, 18)
    return {
        "publicIp": address,
        "publicDns": f"ec2-{address.replace('.', '-')}.{site.region}.compute.amazonaws.com",
    }


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


def _nat_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    address = site.find(inputs.get("allocationId"), "ec2/eip:Eip")
    return {
        "publicIp": address.outputs["publicIp"] if address else None,
        "privateIp": inputs.get("privateIp") or _address(f"{seed}/private", 10, 0),
    }


HOOKS: Mapping[str, Hooks[Site]] = {
    "ec2/eip:Eip": Hooks(outputs=_eip_outputs),
    "ec2/internetGateway:InternetGateway": Hooks(deleting=_leave_vpc),
    "ec2/natGateway:NatGateway": Hooks(outputs=_nat_outputs),
}
