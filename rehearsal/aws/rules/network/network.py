"""VPCs, subnets, endpoints and flow logs."""

import ipaddress
from collections.abc import Iterator

from rehearsal.aws import facts
from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import named, subnets, text
from rehearsal.core.model import Properties
from rehearsal.core.properties import known
from rehearsal.core.rules.model import Violation

_VPC, _SUBNET = "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"
_ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
_VPC_SIZING = (
    "EC2 API Reference, CreateVpc and CreateSubnet (a subnet between /28 and /16; blocks in canonical form)"
)
_MOTO = "moto 5.2.5 moto/ec2/models/subnets.py (create_subnet) and moto/ec2/exceptions.py"
# The largest and the smallest IPv4 block of a VPC or subnet.
_LARGEST, _SMALLEST = 16, 28


def _block(value: object) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(value) if isinstance(value, str) and "/" in value else None
    except ValueError:
        return None


@BOOK.rule("AWS-VPC-001", _VPC, _SUBNET, source=_VPC_SIZING)
def cidr_is_a_network(inputs: Properties) -> Iterator[Violation]:
    """A CIDR block is an IPv4 network address without host bits."""
    value = text(inputs.get("cidrBlock"))
    if value is not None and _block(value) is None:
        try:
            fix = f"Did you mean {ipaddress.IPv4Network(value, strict=False)}?"
        except ValueError:
            fix = "Write it like 10.0.0.0/16."
        yield Violation("cidrBlock", f"{value} is not a valid IPv4 CIDR block", fix)


@BOOK.rule("AWS-VPC-002", _VPC, _SUBNET, source=_VPC_SIZING)
def cidr_size(inputs: Properties) -> Iterator[Violation]:
    """A VPC or subnet is between /16 and /28."""
    block = _block(inputs.get("cidrBlock"))
    if block is not None and not _LARGEST <= block.prefixlen <= _SMALLEST:
        yield Violation(
            "cidrBlock", f"the block must be between /{_LARGEST} and /{_SMALLEST}, not /{block.prefixlen}"
        )


@BOOK.rule_around("AWS-VPC-003", _SUBNET, source=_MOTO)
def zone_of_the_region(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A subnet's zone is one of its region."""
    zone, listed = text(inputs.get("availabilityZone")), site.region in facts.catalog().regions
    # Local Zones, some with GPUs, have names such as us-east-1-dfw-2a; the catalog does not list them.
    local = zone is not None and zone.startswith(f"{site.region}-")
    if zone is not None and listed and not local and zone not in facts.zones(site.region):
        yield Violation(
            "availabilityZone",
            f"Value ({zone}) for parameter availabilityZone is invalid",
            f"Zones of {site.region}: {', '.join(facts.zones(site.region))}.",
            "InvalidParameterValue",
        )


@BOOK.rule_around("AWS-VPC-004", _SUBNET, source=_MOTO)
def subnet_within_vpc(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A subnet lies within the block of its VPC."""
    vpc = site.find(inputs.get("vpcId"), "ec2/vpc:Vpc")
    block, whole = _block(inputs.get("cidrBlock")), _block(vpc.outputs.get("cidrBlock")) if vpc else None
    if vpc is None or block is None or whole is None or block.subnet_of(whole):
        return
    further = site.users(vpc, "ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation")
    if not any((more := _block(one.outputs.get("cidrBlock"))) and block.subnet_of(more) for one in further):
        yield Violation(
            "cidrBlock",
            f"The CIDR '{block}' is invalid.",
            f"It must lie within {whole} of {vpc.id}.",
            "InvalidSubnet.Range",
        )


@BOOK.rule_around("AWS-VPC-005", _SUBNET, source=_MOTO)
def subnets_do_not_overlap(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """No two subnets of a VPC overlap."""
    vpc, block = site.find(inputs.get("vpcId"), "ec2/vpc:Vpc"), _block(inputs.get("cidrBlock"))
    for other in site.users(vpc, "ec2/subnet:Subnet") if vpc and block else ():
        taken = _block(other.outputs.get("cidrBlock"))
        if block and taken and block.overlaps(taken):
            yield Violation(
                "cidrBlock",
                f"The CIDR '{block}' conflicts with another subnet",
                f"{taken} is {named(other)}.",
                "InvalidSubnet.Conflict",
            )


@BOOK.rule_around(
    "AWS-VPC-008", _ENDPOINT, source="botocore 1.44.5 ec2/2016-11-15 CreateVpcEndpointRequest (ServiceRegion)"
)
def endpoint_service_of_the_region(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """An endpoint reaches a service of its own region, unless serviceRegion names another."""
    service = text(inputs.get("serviceName")) or ""
    if not service.startswith("com.amazonaws.") or inputs.get("serviceRegion") is not None:
        return
    region = service.split(".")[2]
    if region in facts.catalog().regions and region != site.region:
        yield Violation(
            "serviceName",
            f"The Vpc Endpoint Service '{service}' does not exist",
            f"The endpoint is in {site.region}.",
            "InvalidServiceName",
        )


@BOOK.rule_around("AWS-VPC-009", _ENDPOINT, source="hashicorp/terraform-provider-aws issue 17269")
def one_private_name(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """Only one endpoint of a VPC holds the private DNS name of a service."""
    if inputs.get("privateDnsEnabled") is not True or not known(inputs.get("vpcId")):
        return
    for other in site.others("ec2/vpcEndpoint:VpcEndpoint"):
        same = all(other.outputs.get(name) == inputs.get(name) for name in ("vpcId", "serviceName"))
        if same and other.outputs.get("privateDnsEnabled"):
            yield Violation(
                "privateDnsEnabled",
                "private-dns-enabled cannot be set because there is already a conflicting DNS domain "
                f"for {inputs.get('serviceName')}",
                f"{named(other)} has it.",
                "InvalidParameter",
            )


@BOOK.rule_around("AWS-VPC-010", _ENDPOINT, source="terraform-aws-modules/terraform-aws-vpc issue 583")
def one_endpoint_subnet_per_zone(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """An Interface endpoint has at most one subnet per zone."""
    found = subnets(site, inputs.get("subnetIds"))
    taken: dict[str, str] = {}
    for subnet in found:
        zone = str(subnet.outputs.get("availabilityZone"))
        if zone in taken and taken[zone] != subnet.id:
            yield Violation(
                "subnetIds",
                f"Found another VPC endpoint subnet in the availability zone of {subnet.id}",
                f"{taken[zone]} is in {zone} too; give one of them.",
                "DuplicateSubnetsInSameZone",
            )
        taken.setdefault(zone, subnet.id)


@BOOK.rule_around(
    "AWS-VPC-023",
    _ENDPOINT,
    source="Amazon GuardDuty User Guide, Troubleshooting Runtime Monitoring (text of CreateVpcEndpoint)",
)
def private_names_need_dns(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """Private DNS of an endpoint needs DNS support and DNS host names of its VPC."""
    vpc = site.find(inputs.get("vpcId"), "ec2/vpc:Vpc")
    interface = inputs.get("vpcEndpointType") == "Interface" and inputs.get("privateDnsEnabled") is True
    if vpc is None or not vpc.urn or not interface or site.preview:
        return
    off = [name for name in ("enableDnsSupport", "enableDnsHostnames") if vpc.outputs.get(name) is False]
    if off:
        yield Violation(
            "privateDnsEnabled",
            "Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC attributes set "
            f"to true for {vpc.id}",
            f"Set {' and '.join(off)} of {named(vpc)}.",
            "InvalidParameter",
        )
