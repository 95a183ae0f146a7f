"""Resources that a program adopts: those that a VPC or an account has from the beginning.

Source: hashicorp/terraform-provider-aws internal/service/ec2/vpc_default_*.go: a create finds the resource
and removes its rules or routes, a delete only forgets it.
"""

from collections.abc import Callable, Mapping

from rehearsal.aws import default_vpc, implicit
from rehearsal.aws.rules.network.older_groups import DEFAULT
from rehearsal.aws.services.security import protocols_of
from rehearsal.aws.site import PACKAGE, Site
from rehearsal.core.emulation.site import Hooks, refuse
from rehearsal.core.model import Properties, Record

_VPC, _SUBNET = f"{PACKAGE}:ec2/vpc:Vpc", f"{PACKAGE}:ec2/subnet:Subnet"
_Outputs = Callable[[Site, str, Properties, Properties], Properties]
# Of the parts that an adoption empties.
_EMPTIED = ("ingress", "egress", "routes", "propagatingVgws")


def _emptied(site: Site, id: object, token: str) -> Properties:
    """The values of the adopted resource, which loses its rules or routes to those of the program."""
    found = site.find(id, token.removeprefix(f"{PACKAGE}:"))
    if found is None:
        return {}
    if not site.preview:
        rest = {name: [] if name in _EMPTIED else value for name, value in found.outputs.items()}
        site.state.replace(found, inputs=found.inputs, outputs=rest)
    return {name: found.outputs.get(name) for name in ("vpcId", "ownerId", "arn", "name", "description")}


def _group(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """The group of a VPC, by default of the default one."""
    vpc = site.find(inputs["vpcId"], "ec2/vpc:Vpc") if "vpcId" in inputs else _default(site, _VPC)
    group = vpc.outputs["defaultSecurityGroupId"] if vpc else ""
    return {**_emptied(site, group, implicit.GROUP), **protocols_of(inputs), "id": group}


def _group_updated(site: Site, group: Record, inputs: Properties) -> Properties:
    return protocols_of(inputs)


def _of(name: str, token: str) -> _Outputs:
    """Outputs of the resource that the property `name` names."""

    def outputs_of(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
        return _emptied(site, inputs.get(name), token)

    return outputs_of


def _vpc(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    found = _default(site, _VPC)
    return {**found.outputs, **inputs, "id": found.id, "existingDefaultVpc": True}


def _subnet(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    found = _default(site, _SUBNET, inputs.get("availabilityZone"))
    return {**found.outputs, **inputs, "id": found.id, "existingDefaultSubnet": True}


def _options(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    vpc = _default(site, _VPC)
    domain = "ec2.internal" if site.region == "us-east-1" else f"{site.region}.compute.internal"
    key = vpc.outputs["dhcpOptionsId"]
    arn = f"arn:aws:ec2:{site.region}:{site.account}:dhcp-options/{key}"
    return {"id": key, "arn": arn, "domainName": domain, "domainNameServers": "AmazonProvidedDNS"}


def _default(site: Site, token: str, zone: object = None) -> Record:
    """The default VPC of this account and region, or its subnet in a zone. Raises RefusalError."""
    default_vpc.ensure(site.state, site.account, site.region)
    for record in site.state.find(package=PACKAGE, type=token, scope=f"{site.account}/{site.region}"):
        if default_vpc.is_default(site.state, record) and zone in (
            None,
            record.outputs.get("availabilityZone"),
        ):
            return record
    raise refuse("InvalidParameterValue", f"there is no default subnet in {zone}", "availabilityZone")


HOOKS: Mapping[str, Hooks[Site]] = {
    DEFAULT: Hooks(outputs=_group, updated=_group_updated),
    "ec2/defaultRouteTable:DefaultRouteTable": Hooks(outputs=_of("defaultRouteTableId", implicit.TABLE_TYPE)),
    "ec2/defaultNetworkAcl:DefaultNetworkAcl": Hooks(outputs=_of("defaultNetworkAclId", implicit.ACL)),
    "ec2/defaultVpc:DefaultVpc": Hooks(outputs=_vpc),
    "ec2/defaultSubnet:DefaultSubnet": Hooks(outputs=_subnet),
    "ec2/defaultVpcDhcpOptions:DefaultVpcDhcpOptions": Hooks(outputs=_options),
}
