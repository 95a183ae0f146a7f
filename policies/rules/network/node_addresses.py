"""Public addresses of nodes."""

from collections.abc import Iterator

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.pools import GKE_CLUSTER, NODE_GROUP, NODE_POOL, TEMPLATE
from policies.stack import Stack

_SUBNET = "aws:ec2/subnet:Subnet"


@CATALOG.rule_around(
    "MLS-NET-06",
    "high",
    (TEMPLATE, NODE_GROUP, NODE_POOL),
    "A node with a public address is one security group away from the internet.",
    "Put nodes into private subnets, and give them no public address.",
    ("CKV_AWS_88", "CKV_GCP_64", "CIS EKS 5.4.3"),
)
def nodes_are_private(pool: Resource, stack: Stack) -> Iterator[Violation]:
    """Nodes have no public addresses, by subnet or by request."""
    if pool.kind == TEMPLATE:
        yield from _addresses(pool)
    elif pool.kind == NODE_GROUP:
        yield from _subnets(pool, stack)
    else:
        yield from _node_pool(pool, stack)


def _addresses(template: Resource) -> Iterator[Violation]:
    for path, interface in template.items("networkInterfaces"):
        # A string in the provider: "true", "false" or empty.
        if str(interface.get("associatePublicIpAddress")).lower() == "true":
            yield Violation("asks for a public address", f"{path}.associatePublicIpAddress")


def _subnets(group: Resource, stack: Stack) -> Iterator[Violation]:
    found = stack.sources(group, group.raw("subnetIds"), "subnetIds", _SUBNET)
    public = [one.name for one in found.resources if one.props.get("mapPublicIpOnLaunch") is True]
    if public and found.certain:
        yield Violation(f"{', '.join(public)} gives its machines public addresses", "subnetIds")
    elif public:
        raise UndeterminedError("which of the subnets it is in is not known before the deployment")
    elif found.foreign:
        raise UndeterminedError(f"subnet {found.foreign[0]} is not in this stack")


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
    private = cluster.props.get("privateClusterConfig") or {}
    if not private and (cluster.props.get("enableAutopilot") is True):
        raise NotApplicableError("Autopilot manages the nodes")
    return private.get("enablePrivateNodes") is True
