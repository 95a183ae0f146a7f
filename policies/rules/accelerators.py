"""Pools of nodes whichever cloud they are of: accelerators, sizes in nodes, labels and taints.

Managed node groups of EKS with their launch templates, and node pools of GKE, also those that are written
into their cluster. Nodes that Karpenter or EKS Auto Mode start on demand are no resources of a stack. Each
question about a pool raises UndeterminedError where its answer is not known.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies.catalogue import NotApplicableError
from policies.resource import Resource, UndeterminedError, is_unknown
from policies.rules.pools import GKE_CLUSTER, NODE_GROUP, NODE_POOL, TEMPLATE, machines_of, template_of
from policies.rules.walking import raw
from policies.stack import Stack

POOLS = (NODE_GROUP, NODE_POOL, GKE_CLUSTER)
STARTING = (NODE_GROUP, TEMPLATE, "aws:ec2/instance:Instance", NODE_POOL, GKE_CLUSTER)
"""Everything that starts machines, or says which."""
# Families with accelerators, also of machines that the catalog does not know: GPUs, Trainium, Inferentia,
# Gaudi, TPUs.
_AWS_FAMILY = re.compile(r"(?:p|g|gr|trn|inf|dl)\d")
_GOOGLE_FAMILY = re.compile(r"(?:a[234]x?|g[24]|ct\d\w*|tpu\w*)-")
# A regional cluster has nodes in three zones by default (GKE, regional clusters).
_ZONES_OF_A_REGION = 3


@dataclass(frozen=True)
class Devices:
    """The accelerators of one machine of a pool."""

    path: str
    """The property that says so."""
    name: str
    """As the catalog calls them, or GKE; the family of a machine that neither knows."""
    machine: str
    number: int | None
    """None where the catalog does not know the machine."""

    @property
    def count(self) -> int:
        """How many a machine has. Raises UndeterminedError where nobody knows."""
        if self.number is None:
            raise UndeterminedError(f"{self.path}: how many accelerators {self.machine} has, no source says")
        return self.number


@dataclass(frozen=True)
class Nodes:
    """A number of nodes, and the property that says so."""

    number: int
    path: str


def machine_of(path: str, name: str) -> Devices | None:
    """The accelerators of a machine type of EC2."""
    from infra.catalog.aws import facts  # noqa: PLC0415 - longer to load than all rules

    row = facts.instance_types.get(name)
    if row is not None:
        return Devices(path, row.accelerator, name, row.accelerator_count)
    return Devices(path, name.partition(".")[0], name, None) if _AWS_FAMILY.match(name) else None


@dataclass(frozen=True)
class EksPool:
    """A managed node group."""

    resource: Resource
    stack: Stack

    @property
    def name(self) -> str:
        """Its name in the program."""
        return self.resource.name

    def devices(self) -> list[Devices]:
        """Of its machines, which it names itself or in its launch template."""
        found = (machine_of(path, name) for path, name in self.machines())
        return [devices for devices in found if devices is not None]

    def machines(self) -> list[tuple[str, str]]:
        """(property, machine type) of each type that it may start."""
        own = self.resource.props.get("instanceTypes")
        template = None if own else template_of(self.resource, self.stack)
        found = machines_of(self.resource, template)
        if template is not None:
            return [("launchTemplate", name) for name in found]
        return [(f"instanceTypes[{index}]", name) for index, name in enumerate(found)]

    def least(self) -> Nodes:
        """How many nodes always run: the lower bound of its size."""
        return self._size("minSize")

    def most(self) -> Nodes:
        """The upper bound of its size."""
        return self._size("maxSize")

    def _size(self, bound: str) -> Nodes:
        number, path = (self.resource.props.get("scalingConfig") or {}).get(bound), f"scalingConfig.{bound}"
        if number is None:
            raise UndeterminedError(f"{path} is not set")
        return Nodes(int(number), path)

    def interruptible(self) -> str:
        """Spot capacity; EKS takes what is on demand where nobody says anything."""
        return "capacityType" if self.resource.props.get("capacityType") == "SPOT" else ""

    def labels(self) -> Mapping[str, Any]:
        """Those of the group."""
        return self.resource.props.get("labels") or {}

    def taints(self) -> list[Mapping[str, Any]]:
        """Those of the group."""
        return list(self.resource.props.get("taints") or ())


@dataclass(frozen=True)
class GkePool:
    """A node pool of GKE: a resource, or a part of its cluster, whose properties are below `prefix`."""

    resource: Resource
    stack: Stack
    props: Mapping[str, Any]
    prefix: str = ""

    @property
    def name(self) -> str:
        """Its name in the program, and its place in a cluster."""
        return f"{self.resource.name} {self.prefix}".strip(" .")

    def devices(self) -> list[Devices]:
        """The accelerators that are attached, or that its machine type brings."""
        node = self.props.get("nodeConfig") or {}
        machine, path = node.get("machineType") or "e2-medium", f"{self.prefix}nodeConfig"
        attached = [
            Devices(f"{path}.guestAccelerators[{index}]", one.get("type") or "", machine, one.get("count"))
            for index, one in enumerate(node.get("guestAccelerators") or ())
            if one.get("count") != 0
        ]
        return attached or _built_in(f"{path}.machineType", machine)

    def least(self) -> Nodes:
        """The lower bound of autoscaling, or the number of nodes; in all zones together."""
        return self._size("Min")

    def most(self) -> Nodes:
        """The upper bound of autoscaling, or the number of nodes; in all zones together."""
        return self._size("Max")

    def _size(self, bound: str) -> Nodes:
        scaling = self.props.get("autoscaling")
        if not scaling:
            given = [key for key in ("nodeCount", "initialNodeCount") if self.props.get(key) is not None]
            number = int(self.props[given[0]]) if given else 1
            return Nodes(number and number * self._zones(), self.prefix + (given or ["nodeCount"])[0])
        # Bounds of all zones together and of each zone exclude each other (google_container_node_pool).
        together = scaling.get("totalMaxNodeCount")
        key = f"total{bound}NodeCount" if together else f"{bound.lower()}NodeCount"
        number = int(scaling.get(key) or 0)
        zones = 1 if together or not number else self._zones()
        return Nodes(number * zones, f"{self.prefix}autoscaling.{key}")

    def _zones(self) -> int:
        cluster = self.cluster()
        for place in (self.props, cluster.props if cluster else {}):
            zones = place.get("nodeLocations")
            if zones:
                # A zonal cluster lists its other zones only; a node pool lists all.
                others = cluster is not None and place is cluster.props and not _is_region(_location(place))
                return len(zones) + others
        location = _location(self.props) or (_location(cluster.props) if cluster else "")
        if not location:
            raise UndeterminedError("location: in how many zones its nodes are, is not known")
        return _ZONES_OF_A_REGION if _is_region(location) else 1

    def cluster(self) -> Resource | None:
        """Its cluster, as far as it is in the stack."""
        if self.resource.kind == GKE_CLUSTER:
            return self.resource
        return self.stack.referred(self.resource, raw(self.props, "cluster"), "cluster", GKE_CLUSTER)

    def home(self) -> str:
        """Which cluster it is of: that of the stack by its URN, another one by its place and name."""
        cluster = self.cluster()
        return cluster.urn if cluster else f"{_location(self.props)}/{raw(self.props, 'cluster')}"

    def interruptible(self) -> str:
        """Spot and preemptible machines; those of Flex Start end after seven days at most."""
        node = self.props.get("nodeConfig") or {}
        for key in ("spot", "preemptible", "flexStart"):
            if node.get(key) is True:
                return f"{self.prefix}nodeConfig.{key}"
        return ""

    def labels(self) -> Mapping[str, Any]:
        """Those of its nodes."""
        return (self.props.get("nodeConfig") or {}).get("labels") or {}

    def taints(self) -> list[Mapping[str, Any]]:
        """Those of its nodes."""
        node = self.props.get("nodeConfig") or {}
        return list(node.get("taints") or node.get("effectiveTaints") or ())


Pool = EksPool | GkePool


def pools_of(resource: Resource, stack: Stack) -> list[Pool]:
    """The pools that a resource of one of POOLS is, or holds. Raises NotApplicableError for none."""
    if resource.kind == NODE_GROUP:
        return [EksPool(resource, stack)]
    if resource.kind == NODE_POOL:
        return [GkePool(resource, stack, resource.props)]
    if not (found := list(_inline(resource, stack))):
        raise NotApplicableError("it holds no node pool itself")
    return list[Pool](found)


def all_pools(stack: Stack) -> list[Pool]:
    """Every pool of a stack."""
    return [
        *(EksPool(group, stack) for group in stack.all(NODE_GROUP)),
        *(GkePool(pool, stack, pool.props) for pool in stack.all(NODE_POOL)),
        *(pool for cluster in stack.all(GKE_CLUSTER) for pool in _inline(cluster, stack)),
    ]


def accelerated(pools: list[Pool]) -> list[Pool]:
    """Those that have accelerators. Raises NotApplicableError where none has."""
    found = [pool for pool in pools if pool.devices()]
    if not found:
        raise NotApplicableError("its machines have no accelerators")
    return found


def started(machine: Resource, stack: Stack) -> Iterator[Devices]:
    """The accelerators of what a resource of one of STARTING may start.

    Raises NotApplicableError where another resource says it, which is judged itself.
    """
    if machine.kind == NODE_GROUP:
        if not machine.props.get("instanceTypes") and template_of(machine, stack):
            raise NotApplicableError("its launch template names the machine, and is judged itself")
        yield from EksPool(machine, stack).devices()
    elif machine.kind == GKE_CLUSTER:
        yield from _provisioned(machine)
        yield from (devices for pool in _written(machine, stack) for devices in pool.devices())
    elif machine.kind == NODE_POOL:
        yield from GkePool(machine, stack, machine.props).devices()
    else:
        yield from _of_instance(machine)


def _written(cluster: Resource, stack: Stack) -> list[Pool]:
    try:
        return pools_of(cluster, stack)
    except NotApplicableError:
        return []


def _of_instance(machine: Resource) -> Iterator[Devices]:
    named = machine.props.get("instanceType")
    if named:
        found = machine_of("instanceType", named)
        if found:
            yield found
        return
    wanted = machine.props.get("instanceRequirements") or {}
    for index, name in enumerate(wanted.get("allowedInstanceTypes") or ()):
        found = machine_of(f"instanceRequirements.allowedInstanceTypes[{index}]", name)
        if found:
            yield found
    if not wanted.get("allowedInstanceTypes"):
        # Names of EC2's own vocabulary, such as `a100`. Without names, EC2 takes what has any accelerator.
        names = wanted.get("acceleratorNames") or ()
        for index, name in enumerate(names):
            yield Devices(f"instanceRequirements.acceleratorNames[{index}]", name, name, None)
        least = (wanted.get("acceleratorCount") or {}).get("min") or 0
        if not names and (least or wanted.get("acceleratorTypes") or wanted.get("acceleratorManufacturers")):
            yield Devices("instanceRequirements", "of any kind", "any machine", None)


def _provisioned(cluster: Resource) -> Iterator[Devices]:
    """What node auto-provisioning may start; its other limits are cpu and memory."""
    scaling = cluster.props.get("clusterAutoscaling") or {}
    for index, limit in enumerate(scaling.get("resourceLimits") or ()):
        kind = limit.get("resourceType") or ""
        if scaling.get("enabled") is not False and kind not in ("", "cpu", "memory") and limit.get("maximum"):
            yield Devices(f"clusterAutoscaling.resourceLimits[{index}]", kind, kind, None)


def _inline(cluster: Resource, stack: Stack) -> Iterator[GkePool]:
    """The pools that are written into a cluster.

    The provider reads all pools into `nodePools`, also those that are resources of their own, and the first
    pool into `nodeConfig` (google_container_cluster, flattenClusterNodePools).
    """
    if cluster.props.get("enableAutopilot") is True:
        return
    written = cluster.props.get("nodePools") or ()
    pools = stack.users(cluster, NODE_POOL, "cluster") if written else ()
    others = {name for pool in pools if not is_unknown(name := raw(pool.props, "name"))}
    for index, pool in enumerate(written):
        if pool.get("name") not in others:
            yield GkePool(cluster, stack, pool, f"nodePools[{index}].")
    if not written and cluster.props.get("removeDefaultNodePool") is not True:
        yield GkePool(cluster, stack, cluster.props)


def _built_in(path: str, machine: str) -> list[Devices]:
    from infra.catalog.gcp import facts  # noqa: PLC0415 - longer to load than all rules

    row = facts.machine_types.get(machine)
    if row is not None:
        return [Devices(path, row.accelerator, machine, row.count)]
    if _GOOGLE_FAMILY.match(machine):
        return [Devices(path, machine.partition("-")[0], machine, None)]
    return []


def _location(props: Mapping[str, Any]) -> str:
    return props.get("location") or ""


def _is_region(location: str) -> bool:
    """`us-central1`, not `us-central1-a`."""
    return location.count("-") == 1
