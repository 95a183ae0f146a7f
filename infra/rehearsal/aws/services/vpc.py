"""VPCs, subnets and endpoints. Source: Amazon VPC User Guide (VPC and subnet sizing); EC2 API error codes."""

import ipaddress
from collections.abc import Iterator

from infra.rehearsal.aws import facts
from infra.rehearsal.aws.naming import draw
from infra.rehearsal.aws.site import Hooks, Site, known, refuse
from infra.rehearsal.model import CheckFailure, Properties
from infra.rehearsal.state import Record

_GROUP = "ec2/securityGroup:SecurityGroup"
# The largest and the smallest IPv4 block of a VPC or subnet.
_LARGEST, _SMALLEST = 16, 28


def _check_cidr(inputs: Properties) -> Iterator[CheckFailure]:
    text = inputs.get("cidrBlock")
    if not known(text):
        return
    try:
        block = ipaddress.IPv4Network(str(text))
    except ValueError as error:
        yield CheckFailure(
            "cidrBlock", f"InvalidParameterValue: {text} is no valid IPv4 CIDR block ({error})"
        )
        return
    if not _LARGEST <= block.prefixlen <= _SMALLEST:
        yield CheckFailure(
            "cidrBlock", f"must be between /{_LARGEST} and /{_SMALLEST}, not /{block.prefixlen}"
        )


def _vpc_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    return {"defaultSecurityGroupId": f"sg-{draw(f'{seed}/group', 17)}"}


def _vpc_created(site: Site, vpc: Record) -> None:
    """Every VPC comes with a group of its own, which goes with it."""
    group = vpc.outputs["defaultSecurityGroupId"]
    site.hidden(vpc, _GROUP, group, {"name": "default", "vpcId": vpc.id, "id": group}, {group})


def _admit_subnet(site: Site, inputs: Properties) -> None:
    zone = inputs.get("availabilityZone")
    if isinstance(zone, str) and zone not in facts.zones(site.region):
        raise refuse(
            "InvalidParameterValue",
            f"Value ({zone}) for parameter availabilityZone is invalid",
            "availabilityZone",
            f"Zones of {site.region}: {', '.join(facts.zones(site.region))}.",
        )
    vpc = site.find(inputs.get("vpcId"), "ec2/vpc:Vpc")
    if vpc is None or not known(inputs.get("cidrBlock")):
        return
    block = ipaddress.IPv4Network(str(inputs["cidrBlock"]))
    whole = ipaddress.IPv4Network(vpc.outputs["cidrBlock"])
    if not block.subnet_of(whole):
        raise refuse(
            "InvalidSubnet.Range",
            f"The CIDR '{block}' is invalid.",
            "cidrBlock",
            f"It must lie within {whole} of {vpc.id}.",
        )
    for other in site.users(vpc, "ec2/subnet:Subnet"):
        taken = other.outputs.get("cidrBlock")
        if taken and block.overlaps(ipaddress.IPv4Network(taken)):
            raise refuse(
                "InvalidSubnet.Conflict",
                f"The CIDR '{block}' conflicts with another subnet",
                "cidrBlock",
                f"{taken} is {other.urn or other.id}.",
            )


def _subnet_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    zone = inputs.get("availabilityZone")
    if not isinstance(zone, str):
        zone = facts.zones(site.region)[0]
    return {"availabilityZone": zone, "availabilityZoneId": facts.zone_id(site.region, zone)}


def _check_endpoint(inputs: Properties) -> Iterator[CheckFailure]:
    kind = inputs.get("vpcEndpointType", "Gateway")
    if kind == "Gateway":
        for name in ("subnetIds", "securityGroupIds", "privateDnsEnabled"):
            if inputs.get(name):
                yield CheckFailure(name, "InvalidParameter: a Gateway endpoint does not take it")
    elif kind == "Interface" and inputs.get("routeTableIds"):
        yield CheckFailure(
            "routeTableIds", "InvalidParameter: an Interface endpoint does not take route tables"
        )


def _admit_endpoint(site: Site, inputs: Properties) -> None:
    service = inputs.get("serviceName")
    if isinstance(service, str) and service.startswith("com.amazonaws."):
        region = service.split(".")[2]
        if "-" in region and region != site.region and not known(inputs.get("serviceRegion")):
            raise refuse(
                "InvalidServiceName",
                f"The Vpc Endpoint Service '{service}' does not exist",
                "serviceName",
                f"The endpoint is in {site.region}.",
            )
    if not inputs.get("privateDnsEnabled"):
        return
    for other in site.others("ec2/vpcEndpoint:VpcEndpoint"):
        same = all(other.outputs.get(name) == inputs.get(name) for name in ("vpcId", "serviceName"))
        if same and known(inputs.get("vpcId")) and other.outputs.get("privateDnsEnabled"):
            raise refuse(
                "InvalidParameter",
                "private-dns-enabled cannot be set because there is already a conflicting DNS domain "
                f"for {service}",
                "privateDnsEnabled",
                f"{other.urn or other.id} has it.",
            )


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


HOOKS = {
    "ec2/vpc:Vpc": Hooks(check=_check_cidr, outputs=_vpc_outputs, created=_vpc_created),
    "ec2/subnet:Subnet": Hooks(check=_check_cidr, admit=_admit_subnet, outputs=_subnet_outputs),
    "ec2/vpcEndpoint:VpcEndpoint": Hooks(
        check=_check_endpoint, admit=_admit_endpoint, outputs=_endpoint_outputs
    ),
}
