"""IP addresses that a cluster uses in its subnets, and those left."""

import ipaddress
from collections.abc import Iterator, Mapping

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import document, items, many, named, number, subnets, template_of, text
from rehearsal.core.model import Properties, Record
from rehearsal.core.properties import at
from rehearsal.core.rules.model import Violation

_RESERVATION = "ec2/subnetCidrReservation:SubnetCidrReservation"
_CLUSTER, _GROUP = "aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup"
_INTERFACE = "ec2/networkInterface:NetworkInterface"
_ISSUES = "botocore 1.44.5 eks/2017-11-01 Issue (InsufficientFreeAddresses)"
# Types with an address in each of their subnets, or more; property with the subnets.
_TAKES: Mapping[str, str] = {
    "ec2/instance:Instance": "subnetId",
    "ec2/natGateway:NatGateway": "subnetId",
    "ec2/vpcEndpoint:VpcEndpoint": "subnetIds",
    "efs/mountTarget:MountTarget": "subnetId",
    "fsx/lustreFileSystem:LustreFileSystem": "subnetIds",
    "lb/loadBalancer:LoadBalancer": "subnets",
    _INTERFACE: "subnetId",
}
# Amazon VPC User Guide, subnet-sizing: the first four addresses of a subnet and the last one.
_RESERVED = 5
# The addresses of a block that the CNI assigns to a node's pods; the first and last block of a subnet hold
# reserved addresses.
_PREFIX, _UNUSABLE = 16, 2
# A tag of further subnets for pods, and the setting of custom subnets for all pods: README.md of the CNI.
_FOR_PODS, _ELSEWHERE = "kubernetes.io/role/cni", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"
# One of these represents the interfaces of all nodes of a group (`services.nodes`).
_OF_NODES = "aws-K8S"
# The User Guide (network-reqs) requires six; the service refuses below five, by its own message.
_OF_CLUSTER = 5


@BOOK.rule_around(
    "AWS-EKS-047",
    _CLUSTER,
    source="awsdocs/amazon-eks-user-guide network-reqs.adoc; messages of EKS: elastic-ipfs/infrastructure "
    "pull request 221, aws/containers-roadmap issue 1693",
)
def subnets_have_addresses(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """Each subnet of a cluster has free addresses for the interfaces of its control plane."""
    short = [
        f"{named(subnet)} Free IPs: {free}"
        for subnet in subnets(site, at(inputs, "vpcConfig.subnetIds"))
        if (free := _free(site, subnet)) is not None and free < _OF_CLUSTER
    ]
    if short:
        yield Violation(
            "vpcConfig.subnetIds",
            f"Provided subnets {' '.join(short)}, need at least {_OF_CLUSTER} IPs in each subnet to be free "
            "for this operation",
            "Choose larger subnets, or others.",
            "InvalidRequestException",
        )


@BOOK.rule_around("AWS-EKS-048", _GROUP, source=_ISSUES)
def nodes_have_addresses(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The subnets of a node group have an address for each interface of the nodes that start now."""
    nodes, each, free = _demand(inputs, site, "desiredSize")
    if nodes * each > free:
        yield Violation(
            "subnetIds",
            "InsufficientFreeAddresses: One or more of the subnets associated with your managed node group "
            f"does not have enough available IP addresses for new nodes: {nodes} nodes with {each} each, "
            f"{free} left",
            "Choose larger subnets, or fewer nodes.",
            "CREATE_FAILED",
        )


@BOOK.rule_around("AWS-EKS-049", _GROUP, source=_ISSUES, advice=True)
def growth_has_addresses(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """They also have addresses for a group at its maximum size."""
    now, _, _ = _demand(inputs, site, "desiredSize")
    nodes, each, free = _demand(inputs, site, "maxSize")
    if nodes * each > free >= now * each:
        yield Violation(
            "scalingConfig.maxSize",
            f"the group may grow to {nodes} nodes with {each} addresses each, but its subnets have {free} "
            "left: InsufficientFreeAddresses when it grows",
            "Choose larger subnets, or a smaller maxSize.",
        )


@BOOK.rule_around(
    "AWS-EKS-050",
    _GROUP,
    source="aws/amazon-vpc-cni-k8s@b52188387f2e docs/prefix-and-ip-target.md (a node without pods has as "
    "many prefixes as WARM_PREFIX_TARGET, one where targets of addresses override it), "
    "pkg/ipamd/ipamd.go (InsufficientCidrBlocks)",
    advice=True,
)
def pods_have_addresses(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """With prefix delegation, subnets have blocks for every node before its first pod.

    Without it, the number depends on limits of the type, which this catalog does not have.
    """
    each = _prefixes(inputs, site)
    nodes = int(number(at(inputs, "scalingConfig.maxSize")) or 0)
    rooms = [_prefix_room(site, subnet) for subnet in subnets(site, inputs.get("subnetIds"))]
    if site.preview or not each or not rooms or None in rooms:
        return
    room = sum(one for one in rooms if one is not None)
    if nodes * each > room:
        yield Violation(
            "scalingConfig.maxSize",
            f"the group may grow to {nodes} nodes, of which each takes {each} /28 for its pods, but its "
            f"subnets have room for {room}: pods of the last nodes get no address (InsufficientCidrBlocks)",
            "Choose larger subnets, or a smaller maxSize.",
        )


def _prefixes(inputs: Properties, site: AwsContext) -> int:
    """Number of /28 that a node takes at its start; 0 without prefix delegation or if unknown."""
    if any(_FOR_PODS in (one.outputs.get("tags") or {}) for one in site.others("ec2/subnet:Subnet")):
        return 0
    for addon in site.others("eks/addon:Addon"):
        settings = document(addon.inputs.get("configurationValues"))
        env = settings.get("env") if isinstance(settings, Mapping) else None
        here = addon.inputs.get("clusterName") == inputs.get("clusterName")
        if not here or addon.inputs.get("addonName") != "vpc-cni" or not isinstance(env, Mapping):
            continue
        if str(env.get("ENABLE_PREFIX_DELEGATION")) != "true" or str(env.get(_ELSEWHERE)) == "true":
            return 0
        overridden = {"WARM_IP_TARGET", "MINIMUM_IP_TARGET"} & env.keys()
        wanted = "" if overridden else str(env.get("WARM_PREFIX_TARGET"))
        return max(1, int(wanted)) if wanted.isdigit() else 1
    return 0


def _prefix_room(site: AwsContext, subnet: Record) -> int | None:
    """Maximum number of /28 in a subnet; None where its block is unknown."""
    block, free = _block(subnet), _free(site, subnet)
    if block is None or free is None:
        return None
    return max(0, min(block.num_addresses // _PREFIX - _UNUSABLE, free // _PREFIX))


def _demand(inputs: Properties, site: AwsContext, size: str) -> tuple[int, int, int]:
    """The nodes of a group at a size, the addresses of each without its pods, and the addresses left."""
    found = subnets(site, inputs.get("subnetIds"))
    left = [_free_for_interfaces(site, subnet) for subnet in found]
    if site.preview or not found or None in left:
        return 0, 1, 0
    template = template_of(site, inputs)
    interfaces = items(template.inputs, "networkInterfaces") if template else []
    addressed = [one for _, one in interfaces if one.get("interfaceType") != "efa-only"]
    nodes = int(number(at(inputs, f"scalingConfig.{size}")) or 0)
    return nodes, max(1, len(addressed)), sum(max(0, one) for one in left if one is not None)


def _block(subnet: Record) -> ipaddress.IPv4Network | None:
    block = text(subnet.outputs.get("cidrBlock"))
    return None if block is None else ipaddress.IPv4Network(block, strict=False)


def _free(site: AwsContext, subnet: Record) -> int | None:
    """Maximum number of addresses left in a subnet; None where its block is unknown."""
    block = _block(subnet)
    if block is None:
        return None
    return block.num_addresses - _RESERVED - sum(_taken(site, subnet)) - sum(_nodes(site, subnet))


def _free_for_interfaces(site: AwsContext, subnet: Record) -> int | None:
    """Those that an interface can get automatically: none of a reservation.

    Source: Amazon VPC User Guide, subnet-cidr-reservation ("so that Amazon can't assign them to your network
    interfaces"; those for prefixes are given as prefixes), read 2026-11-23.
    """
    block, free = _block(subnet), _free(site, subnet)
    if block is None or free is None:
        return None
    first, last = int(block[0]) + _RESERVED - 1, int(block[-1]) - 1
    for one in site.others(_RESERVATION):
        kept = text(one.outputs.get("cidrBlock"))
        if one.outputs.get("subnetId") == subnet.id and kept is not None and ":" not in kept:
            reserved = ipaddress.IPv4Network(kept, strict=False)
            free -= max(0, min(int(reserved[-1]), last) - max(int(reserved[0]), first) + 1)
    return free


def _taken(site: AwsContext, subnet: Record) -> Iterator[int]:
    for token, path in _TAKES.items():
        for one in site.others(token):
            stands_for_nodes = token == _INTERFACE and one.outputs.get("description") == _OF_NODES
            if subnet.id in many(one.outputs.get(path)) and not stands_for_nodes:
                yield 1


def _nodes(site: AwsContext, subnet: Record) -> Iterator[int]:
    """Nodes of other groups that have no other subnet."""
    for group in site.others("eks/nodeGroup:NodeGroup"):
        if group.inputs.get("subnetIds") == [subnet.id]:
            yield int(number(at(group.inputs, "scalingConfig.desiredSize")) or 0)
