"""The security group of EFA devices."""

from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.network.security_groups import GROUP, Way, open_to_itself
from policies.rules.pools import TEMPLATE, efa_interfaces
from policies.stack import Stack

_CLUSTER = "aws:eks/cluster:Cluster"
_WAYS: tuple[tuple[Way, str], ...] = (("ingress", "from"), ("egress", "to"))


@CATALOG.rule_around(
    "MLS-NET-01",
    "critical",
    (TEMPLATE,),
    "EFA traffic is not IP: only a rule that names the group allows it, no range such as 0.0.0.0/0. "
    "Without it the fabric fails at the first collective, or NCCL falls back to TCP.",
    "Give one security group of the devices a rule for each way: all protocols, the group's own id.",
    ("AWS PCS EFA guide", "EKS sec-group-reqs"),
)
def efa_devices_reach_each_other(template: Resource, stack: Stack) -> Iterator[Violation]:
    """A security group of every EFA device allows all traffic from itself and to itself."""
    devices = efa_interfaces(template)
    if not devices:
        raise NotApplicableError("it has no EFA device")
    named = any(interface.get("securityGroups") for _, interface in devices)
    for path, interface in devices:
        if named and not interface.get("securityGroups"):
            message = "it has no group, unlike others of the template: it gets the default group of the VPC"
            yield Violation(message, f"{path}.securityGroups")
    for way, preposition in _WAYS:
        for path, interface in devices:
            if not _admitted(template, interface.get("securityGroups"), stack, way):
                message = f"no group of it allows all {way} {preposition} itself"
                yield Violation(message, f"{path}.securityGroups")
                break


def _admitted(template: Resource, given: Any, stack: Stack, way: Way) -> bool:
    """Return whether a group of a device allows all traffic to itself in a direction."""
    groups = stack.sources(template, given, "networkInterfaces", GROUP, _CLUSTER)
    if not groups.resources and not groups.foreign:
        return True  # EKS gives the nodes the cluster's own group, which is open to itself (sec-group-reqs)
    found = any(_is_open(group, stack, way) for group in groups.resources)
    if not found and groups.foreign:
        raise UndeterminedError(f"security group {groups.foreign[0]} is not in this stack")
    if found and not groups.certain:
        raise UndeterminedError("which security groups it has is not known before the deployment")
    return found


def _is_open(group: Resource, stack: Stack, way: Way) -> bool:
    """Return whether a group is open to itself; a cluster stands for its own group, which is."""
    return group.kind == _CLUSTER or open_to_itself(group, stack, way)
