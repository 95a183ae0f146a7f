"""Public addresses of nodes."""

from collections.abc import Iterator

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.accelerators import inline_pools
from policies.rules.pools import (
    EKS_CLUSTER,
    GKE_CLUSTER,
    NODE_GROUP,
    NODE_POOL,
    TEMPLATE,
    is_auto_mode,
)
from policies.stack import Stack

_SUBNET = "aws:ec2/subnet:Subnet"
_DEFAULT = "privateClusterConfig.enablePrivateNodes"


@CATALOG.rule_around(
    "MLS-NET-06",
    "high",
    (TEMPLATE, NODE_GROUP, EKS_CLUSTER, NODE_POOL, GKE_CLUSTER),
    "A node with a public address is one security group away from the internet.",
    "Put nodes into private subnets, and give them no public address.",
    ("CKV_AWS_88", "CKV_GCP_64", "CIS EKS 5.4.3"),
)
def nodes_are_private(pool: Resource, stack: Stack) -> Iterator[Violation]:
    """Nodes have no public addresses, by subnet or by request."""
    if pool.kind == TEMPLATE:
        yield from _addresses(pool)
    elif pool.kind == NODE_GROUP:
        yield from _subnets(pool, "subnetIds", stack)
    elif pool.kind == EKS_CLUSTER:
        # EKS User Guide, create-node-class: built-in pools of Auto Mode are in the subnets of the cluster.
        if not is_auto_mode(pool) or not (pool.props.get("computeConfig") or {}).get("nodePools"):
            raise NotApplicableError("it starts no nodes itself")
        yield from _subnets(pool, "vpcConfig.subnetIds", stack)
    elif pool.kind == GKE_CLUSTER:
        yield from _cluster(pool, stack)
    else:
        yield from _node_pool(pool, stack)


def _addresses(template: Resource) -> Iterator[Violation]:
    for path, interface in template.items("networkInterfaces"):
        # A string in the provider: "true", "false" or empty.
        if str(interface.get("associatePublicIpAddress")).lower() == "true":
            yield Violation("asks for a public address", f"{path}.associatePublicIpAddress")


def _subnets(group: Resource, path: str, stack: Stack) -> Iterator[Violation]:
    found = stack.sources(group, group.raw(path), path.partition(".")[0], _SUBNET)
    public = [one.name for one in found.resources if one.props.get("mapPublicIpOnLaunch") is True]
    if public and found.certain:
        yield Violation(f"{', '.join(public)} gives its machines public addresses", path)
    elif public:
        raise UndeterminedError("which of the subnets it is in is not known before the deployment")
    elif found.foreign:
        raise UndeterminedError(f"subnet {found.foreign[0]} is not in this stack")


def _cluster(cluster: Resource, stack: Stack) -> Iterator[Violation]:
    """Nodes that a cluster of GKE starts: of Autopilot, of inline and default pools, or provisioned."""
    autopilot = cluster.props.get("enableAutopilot") is True
    provisioned = (cluster.props.get("clusterAutoscaling") or {}).get("enabled") is True
    private = _has_private_nodes(cluster)
    pools = inline_pools(cluster, stack)
    for pool in pools:
        own = (pool.props.get("networkConfig") or {}).get("enablePrivateNodes")
        if not (private if own is None else own is True):
            path = f"{pool.prefix}networkConfig.enablePrivateNodes" if pool.prefix else _DEFAULT
            yield Violation("its nodes have public addresses", path)
    if not pools and not autopilot and not provisioned:
        raise NotApplicableError("it starts no nodes itself")
    if (autopilot or provisioned) and not private:
        yield Violation("the nodes that it starts have public addresses", _DEFAULT)


def _node_pool(pool: Resource, stack: Stack) -> Iterator[Violation]:
    own = (pool.props.get("networkConfig") or {}).get("enablePrivateNodes")
    if own is None:
        own = _private_by_default(pool, stack)
    if own is not True:
        yield Violation("its nodes have public addresses", "networkConfig.enablePrivateNodes")


def _private_by_default(pool: Resource, stack: Stack) -> bool:
    """Default of its cluster."""
    cluster = stack.target(pool, "cluster", GKE_CLUSTER)
    if cluster is None:
        raise UndeterminedError("its cluster is not in this stack, and it does not set it itself")
    return _has_private_nodes(cluster)


def _has_private_nodes(cluster: Resource) -> bool:
    return (cluster.props.get("privateClusterConfig") or {}).get("enablePrivateNodes") is True
