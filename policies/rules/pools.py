"""Node groups of EKS with their launch templates, and node pools of GKE."""

from collections.abc import Iterator
from typing import Any

from policies.resource import Resource, UndeterminedError, is_unknown
from policies.stack import Stack

NODE_GROUP, TEMPLATE = "aws:eks/nodeGroup:NodeGroup", "aws:ec2/launchTemplate:LaunchTemplate"
NODE_POOL, GKE_CLUSTER = "gcp:container/nodePool:NodePool", "gcp:container/cluster:Cluster"
EKS_CLUSTER, INSTANCE = "aws:eks/cluster:Cluster", "aws:ec2/instance:Instance"
EFA = ("efa", "efa-only")
_SUBNET = "aws:ec2/subnet:Subnet"


def is_auto_mode(cluster: Resource) -> bool:
    """Return whether a cluster of EKS has Auto Mode, which starts nodes itself."""
    return (cluster.props.get("computeConfig") or {}).get("enabled") is True


def template_of(group: Resource, stack: Stack) -> Resource | None:
    """The launch template of a node group or an instance, or None.

    Raises UndeterminedError if it is not in the stack, or if the stack describes another version of it.
    """
    for path in ("launchTemplate.id", "launchTemplate.name"):
        value = group.raw(path)
        if is_unknown(value) or value:
            found = _running(group, stack) or stack.target(group, path, TEMPLATE)
            if found is None:
                raise UndeterminedError(f"its launch template {value} is not in this stack")
            if group.kind == INSTANCE:
                _check_version(group, found)
            return found
    return None


def _running(group: Resource, stack: Stack) -> Resource | None:
    """The version that its nodes run, if the source has it as a resource."""
    names = [group.raw(f"launchTemplate.{name}") for name in ("id", "version")]
    if any(map(is_unknown, names)) or not all(names):
        return None
    return stack.referred(group, ":".join(map(str, names)), "launchTemplate", TEMPLATE)


def _check_version(machine: Resource, template: Resource) -> None:
    """Raise UndeterminedError unless an instance starts from the latest version, which a template describes.

    Without a version it starts from the default one (EC2 API, LaunchTemplateSpecification): the first, unless
    the template says otherwise. A template that is created, or has no number, has one version.
    """
    wanted, latest = machine.raw("launchTemplate.version"), template.raw("latestVersion")
    if is_unknown(template.id) and is_unknown(wanted):
        return
    asked = (machine.props.get("launchTemplate") or {}).get("version") or "$Default"
    if asked == "$Default":
        follows = template.props.get("updateDefaultVersion") is True
        asked = "$Latest" if follows else template.raw("defaultVersion")
    if is_unknown(latest) or latest is None:
        changed = template.origin == "planned" and not is_unknown(template.id)
        latest = "the one that this update makes" if changed else 1
    asked = 1 if is_unknown(asked) or asked is None else asked
    if asked != "$Latest" and str(asked) != str(latest):
        raise UndeterminedError(f"it starts from version {asked} of its launch template, not from {latest}")


def groups_of(template: Resource, stack: Stack) -> list[Resource]:
    """The node groups of a launch template."""
    return stack.once(_groups_by_template).get(template.urn, [])


def _groups_by_template(stack: Stack) -> dict[str, list[Resource]]:
    found: dict[str, list[Resource]] = {}
    for group, template in pools_of(stack):
        if template:
            found.setdefault(template.urn, []).append(group)
    return found


def machines_of(group: Resource, template: Resource | None) -> list[str]:
    """The machine types of a node group, the preferred one first."""
    own = template.props.get("instanceType") if template else None
    given = list(group.props.get("instanceTypes") or ()) or ([own] if own else [])
    # EKS API Reference, CreateNodegroup: without a type, t3.medium.
    return [str(machine) for machine in given] or ["t3.medium"]


def efa_interfaces(template: Resource) -> list[tuple[str, Any]]:
    """(path, interface) of the EFA devices of a launch template."""
    return [found for found in template.items("networkInterfaces") if found[1].get("interfaceType") in EFA]


def uses_efa(group: Resource, stack: Stack) -> bool:
    """Return whether the nodes of a node group use EFA."""
    template = template_of(group, stack)
    return template is not None and bool(efa_interfaces(template))


def is_prepaid(group: Resource, stack: Stack) -> bool:
    """Return whether a node group starts machines of a Capacity Block, which is paid in advance as a whole.

    Its launch template must name the block, too: without it EKS starts none (EKS User Guide,
    capacity-blocks-mng).
    """
    if group.props.get("capacityType") != "CAPACITY_BLOCK":
        return False
    template = template_of(group, stack)
    if template is None:
        return False
    market = (template.props.get("instanceMarketOptions") or {}).get("marketType")
    block = template.raw("capacityReservationSpecification.capacityReservationTarget.capacityReservationId")
    return market == "capacity-block" and (is_unknown(block) or bool(block))


def most_nodes(group: Resource) -> int:
    """The maximum size of a node group."""
    return int((group.props.get("scalingConfig") or {}).get("maxSize") or 0)


def least_nodes(group: Resource) -> int:
    """The minimum size of a node group."""
    return int((group.props.get("scalingConfig") or {}).get("minSize") or 0)


def pools_of(stack: Stack) -> Iterator[tuple[Resource, Resource | None]]:
    """All node groups with their launch templates."""
    for group in stack.all(NODE_GROUP):
        yield group, template_of(group, stack)


def zones_of(user: Resource, property: str, stack: Stack) -> set[str]:
    """The zones of the subnets that a property names. Raises UndeterminedError where one is not known."""
    found = stack.sources(user, user.raw(property), property, _SUBNET)
    if found.foreign:
        raise UndeterminedError(f"{property} of {user.name}: {found.foreign[0]} is not in the stack")
    subnets = [
        one.props.get("availabilityZone") or one.computed("availabilityZoneId") for one in found.resources
    ]
    zones = set(map(str, subnets))
    if not found.certain and len(zones) > 1:
        raise UndeterminedError(f"{property} of {user.name}: {' or '.join(sorted(zones))} is not known")
    return zones
