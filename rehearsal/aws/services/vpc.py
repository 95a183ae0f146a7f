"""VPCs, subnets and endpoints. Source: Amazon VPC User Guide (VPC and subnet sizing); EC2 API error codes."""

from collections.abc import Mapping

from rehearsal.aws import facts, implicit
from rehearsal.aws.site import Site
from rehearsal.core.emulation.site import Hooks
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties, Record


def _vpc_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    return {"defaultSecurityGroupId": f"sg-{draw(f'{seed}/group', 17)}"}


def _vpc_created(site: Site, vpc: Record) -> None:
    """Create the route table, network ACL and security group of the VPC, which are deleted with it."""
    implicit.make(site.state, vpc)


def _subnet_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    zone = inputs.get("availabilityZone")
    if not isinstance(zone, str):
        zone = facts.zones(site.region)[0]
    return {"availabilityZone": zone, "availabilityZoneId": facts.zone_id(site.region, zone)}


def _endpoint_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    if inputs.get("vpcEndpointType", "Gateway") == "Gateway":
        return {"networkInterfaceIds": [], "dnsEntries": []}
    subnets = inputs.get("subnetIds") or []
    service = str(inputs.get("serviceName")).rpartition(".")[2]
    name = f"{outputs['id']}-{draw(f'{seed}/dns', 8)}.{service}.{site.region}.vpce.amazonaws.com"
    return {
        "networkInterfaceIds": [f"eni-{draw(f'{seed}/{index}', 17)}" for index, _ in enumerate(subnets)],
        "dnsEntries": [{"dnsName": name, "hostedZoneId": f"Z{draw(f'{seed}/zone', 13).upper()}"}],
        "prefixListId": None,
    }


HOOKS: Mapping[str, Hooks[Site]] = {
    "ec2/vpc:Vpc": Hooks(outputs=_vpc_outputs, created=_vpc_created),
    "ec2/subnet:Subnet": Hooks(outputs=_subnet_outputs),
    "ec2/vpcEndpoint:VpcEndpoint": Hooks(outputs=_endpoint_outputs),
}
