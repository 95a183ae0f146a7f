"""The network of an EKS cluster."""

import ipaddress
from collections.abc import Iterator

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import all_known, subnets, text, vpcs, zones
from rehearsal.core.model import Properties
from rehearsal.core.properties import at, each
from rehearsal.core.rules.model import Violation

_CLUSTER = "aws:eks/cluster:Cluster"
_NETWORK = "botocore 1.44.5 eks/2017-11-01 KubernetesNetworkConfigRequest"
_GUIDE = "pulumi-aws 7.51.1 docstring of aws.eks.ClusterVpcConfigArgs (subnet_ids)"
_SERVICE = "kubernetesNetworkConfig.serviceIpv4Cidr"
_PRIVATE = tuple(map(ipaddress.IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
_LARGEST, _SMALLEST = 12, 24


def _services(inputs: Properties) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(text(at(inputs, _SERVICE)) or "")
    except ValueError:
        return None


@BOOK.rule_around("AWS-EKS-041", _CLUSTER, source=_GUIDE)
def two_zones(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A cluster's subnets are in at least two zones."""
    given = at(inputs, "vpcConfig.subnetIds")
    if all_known(given) and len(zones(subnets(site, given))) < 2:
        yield Violation(
            "vpcConfig.subnetIds",
            "Subnets specified must be in at least two different AZs",
            "Add a subnet of another zone.",
            "InvalidParameterException",
        )


@BOOK.rule_around("AWS-EKS-042", _CLUSTER, source=_GUIDE)
def one_vpc(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A cluster's subnets are in one VPC."""
    if len(vpcs(subnets(site, at(inputs, "vpcConfig.subnetIds")))) > 1:
        yield Violation(
            "vpcConfig.subnetIds",
            "Subnets must be in one VPC",
            "Choose those of one.",
            "InvalidParameterException",
        )


@BOOK.rule("AWS-EKS-043", _CLUSTER, source=_NETWORK)
def services_are_private(inputs: Properties) -> Iterator[Violation]:
    """The block of Kubernetes services is a private one between /24 and /12."""
    value, block = text(at(inputs, _SERVICE)), _services(inputs)
    if value is None:
        return
    inside = block is not None and any(block.subnet_of(whole) for whole in _PRIVATE)
    if block is None or not inside or not _LARGEST <= block.prefixlen <= _SMALLEST:
        yield Violation(
            _SERVICE,
            f"{value} is not a block of 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16 between /24 and /12",
            "Use for example 172.20.0.0/16.",
        )


@BOOK.rule_around("AWS-EKS-044", _CLUSTER, source=_NETWORK)
def services_apart_from_vpc(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The block of Kubernetes services does not overlap the VPC."""
    block, found = _services(inputs), subnets(site, at(inputs, "vpcConfig.subnetIds"))
    vpc = site.find(found[0].outputs.get("vpcId"), "ec2/vpc:Vpc") if found else None
    whole = text(vpc.outputs.get("cidrBlock")) if vpc else None
    if block and whole and block.overlaps(ipaddress.IPv4Network(whole)):
        yield Violation(
            _SERVICE,
            f"{block} overlaps the VPC's {whole}",
            "Choose another block.",
            "InvalidParameterException",
        )


@BOOK.rule(
    "AWS-EKS-046", _CLUSTER, source="botocore 1.44.5 eks/2017-11-01 VpcConfigRequest (publicAccessCidrs)"
)
def public_blocks_are_blocks(inputs: Properties) -> Iterator[Violation]:
    """The public endpoint is open to CIDR blocks."""
    for path, value in each(inputs, "vpcConfig.publicAccessCidrs[]"):
        try:
            ipaddress.ip_network(str(value))
            block = "/" in str(value)  # ip_network takes an address, too
        except ValueError:
            block = False
        if not block:
            yield Violation(path, f"{value} is not a CIDR block", "Write an address as 203.0.113.7/32.")
