"""Node pools of both clouds: accelerators, sizes, labels and taints.

These are managed node groups of EKS with their launch templates, and node pools of GKE, also those inside of
their cluster. Nodes that Karpenter or EKS Auto Mode start on demand are no resources of a stack. Methods of
pools raise UndeterminedError for unknown values.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies.catalog import NotApplicableError
from policies.resource import Resource, UndeterminedError, is_unknown
from policies.rules import pcs
from policies.rules.pools import GKE_CLUSTER, NODE_GROUP, NODE_POOL, TEMPLATE, machines_of, template_of
from policies.rules.properties import raw
from policies.stack import Stack

POOLS = (NODE_GROUP, NODE_POOL, GKE_CLUSTER)
STARTING = (NODE_GROUP, TEMPLATE, "aws:ec2/instance:Instance", NODE_POOL, GKE_CLUSTER)
"""Kinds that start machines, or name machine types."""
# Families with accelerators, also of machine types outside of the catalog: GPUs, Trainium, Inferentia, Gaudi,
# TPUs.
_AWS_FAMILY = re.compile(r"(?:p|g|gr|trn|inf|dl)\d")
_GOOGLE_FAMILY = re.compile(r"(?:a[234]x?|g[24]|ct\d\w*|tpu\w*)-")
# A regional cluster has nodes in three zones by default (GKE, regional clusters).
_ZONES_OF_A_REGION = 3


@dataclass(frozen=True)
class Devices:
    """The accelerators of one machine of a pool."""

    path: str
    """The property that names them."""
    name: str
    """Name in the catalog or in GKE; the family for an unknown machine type."""
    machine: str
    number: int | None
    """None if the catalog does not have the machine type."""

    @property
    def count(self) -> int:
        """Number per machine. Raises UndeterminedError if it is unknown."""
        if self.number is None:
            raise UndeterminedError(f"{self.path}: the number of accelerators of {self.machine} is not known")
        return self.number


@dataclass(frozen=True)
class NodeCount:
    """A number of nodes, and the property that sets it."""

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
        """Accelerators of its machine types, which it or its launch template names."""
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

    def least(self) -> NodeCount:
        """The lower bound of its size."""
        return self._size("minSize")

    def most(self) -> NodeCount:
        """The upper bound of its size."""
        return self._size("maxSize")

    def _size(self, bound: str) -> NodeCount:
        number, path = (self.resource.props.get("scalingConfig") or {}).get(bound), f"scalingConfig.{bound}"
        if number is None:
            raise UndeterminedError(f"{path} is not set")
        return NodeCount(int(number), path)

    def interruptible(self) -> str:
        """The property that selects spot capacity; empty for on-demand capacity, the default of EKS."""
        return "capacityType" if self.resource.props.get("capacityType") == "SPOT" else ""

    def labels(self) -> Mapping[str, Any]:
        """Labels of the group."""
        return self.resource.props.get("labels") or {}

    def taints(self) -> list[Mapping[str, Any]]:
        """Taints of the group."""
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
        """The attached accelerators, or those of its machine type."""
        node = self.props.get("nodeConfig") or {}
        machine, path = node.get("machineType") or "e2-medium", f"{self.prefix}nodeConfig"
        attached = [
            Devices(f"{path}.guestAccelerators[{index}]", one.get("type") or "", machine, one.get("count"))
            for index, one in enumerate(node.get("guestAccelerators") or ())
            if one.get("count") != 0
        ]
        return attached or _built_in(f"{path}.machineType", machine)

    def least(self) -> NodeCount:
        """The lower bound of autoscaling, or the number of nodes; in all zones together."""
        return self._size("Min")

    def most(self) -> NodeCount:
        """The upper bound of autoscaling, or the number of nodes; in all zones together."""
        return self._size("Max")

    def _size(self, bound: str) -> NodeCount:
        scaling = self.props.get("autoscaling")
        if not scaling:
            given = [key for key in ("nodeCount", "initialNodeCount") if self.props.get(key) is not None]
            number = int(self.props[given[0]]) if given else 1
            return NodeCount(number and number * self._zones(), self.prefix + (given or ["nodeCount"])[0])
        # Bounds of all zones together and of each zone exclude each other (google_container_node_pool).
        together = scaling.get("totalMaxNodeCount")
        key = f"total{bound}NodeCount" if together else f"{bound.lower()}NodeCount"
        number = int(scaling.get(key) or 0)
        zones = 1 if together or not number else self._zones()
        return NodeCount(number * zones, f"{self.prefix}autoscaling.{key}")

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
            raise UndeterminedError("location: the number of its zones is not known")
        return _ZONES_OF_A_REGION if _is_region(location) else 1

    def cluster(self) -> Resource | None:
        """Its cluster, if it is in the stack."""
        if self.resource.kind == GKE_CLUSTER:
            return self.resource
        return self.stack.referred(self.resource, raw(self.props, "cluster"), "cluster", GKE_CLUSTER)

    def home(self) -> str:
        """Its cluster: the URN if it is in the stack, else location and name."""
        cluster = self.cluster()
        return cluster.urn if cluster else f"{_location(self.props)}/{raw(self.props, 'cluster')}"

    def interruptible(self) -> str:
        """The property that selects spot, preemptible or Flex Start machines, which end after seven days."""
        node = self.props.get("nodeConfig") or {}
        for key in ("spot", "preemptible", "flexStart"):
            if node.get(key) is True:
                return f"{self.prefix}nodeConfig.{key}"
        return ""

    def labels(self) -> Mapping[str, Any]:
        """Labels of its nodes."""
        return (self.props.get("nodeConfig") or {}).get("labels") or {}

    def taints(self) -> list[Mapping[str, Any]]:
        """Taints of its nodes."""
        node = self.props.get("nodeConfig") or {}
        return list(node.get("taints") or node.get("effectiveTaints") or ())


Pool = EksPool | GkePool


def pools_of(resource: Resource, stack: Stack) -> list[Pool]:
    """The pools of a resource of one of POOLS. Raises NotApplicableError if it has none."""
    if resource.kind == NODE_GROUP:
        return [EksPool(resource, stack)]
    if resource.kind == NODE_POOL:
        return [GkePool(resource, stack, resource.props)]
    if not (found := inline_pools(resource, stack)):
        raise NotApplicableError("it has no node pool of its own")
    return list[Pool](found)


def all_pools(stack: Stack) -> list[Pool]:
    """All pools of a stack."""
    return [
        *(EksPool(group, stack) for group in stack.all(NODE_GROUP)),
        *(GkePool(pool, stack, pool.props) for pool in stack.all(NODE_POOL)),
        *(pool for cluster in stack.all(GKE_CLUSTER) for pool in inline_pools(cluster, stack)),
    ]


def accelerated(pools: list[Pool]) -> list[Pool]:
    """Pools with accelerators. Raises NotApplicableError if there are none."""
    found = [pool for pool in pools if pool.devices()]
    if not found:
        raise NotApplicableError("its machines have no accelerators")
    return found


def has_accelerators(group: Resource, stack: Stack) -> bool:
    """Return whether the nodes of a node group of EKS have accelerators, by their image or machine types."""
    image = str(group.props.get("amiType") or "")
    return "NVIDIA" in image or "NEURON" in image or bool(EksPool(group, stack).devices())


def started(machine: Resource, stack: Stack) -> Iterator[Devices]:
    """The accelerators of machines that a resource of one of STARTING may start.

    Raises NotApplicableError if another resource, which is judged itself, names the machine type.
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
        if machine.kind == TEMPLATE and not machine.props.get("instanceType"):
            named = (machine_of("instanceType", name) for name in pcs.machines_of(machine, stack))
            yield from (devices for devices in named if devices is not None)


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
        # Accelerator names of EC2, such as `a100`. Without names, EC2 chooses types with any accelerator.
        names = wanted.get("acceleratorNames") or ()
        for index, name in enumerate(names):
            yield Devices(f"instanceRequirements.acceleratorNames[{index}]", name, name, None)
        least = (wanted.get("acceleratorCount") or {}).get("min") or 0
        if not names and (least or wanted.get("acceleratorTypes") or wanted.get("acceleratorManufacturers")):
            yield Devices("instanceRequirements", "of any kind", "any machine", None)


def _provisioned(cluster: Resource) -> Iterator[Devices]:
    """Accelerators of node auto-provisioning; its other limits are cpu and memory."""
    scaling = cluster.props.get("clusterAutoscaling") or {}
    for index, limit in enumerate(scaling.get("resourceLimits") or ()):
        kind = limit.get("resourceType") or ""
        if scaling.get("enabled") is not False and kind not in ("", "cpu", "memory") and limit.get("maximum"):
            yield Devices(f"clusterAutoscaling.resourceLimits[{index}]", kind, kind, None)


def inline_pools(cluster: Resource, stack: Stack) -> list[GkePool]:
    """The pools inside of a cluster resource of GKE, also its default pool.

    The provider reads all pools into `nodePools`, also those that are resources of their own, and the first
    pool into `nodeConfig` (google_container_cluster, flattenClusterNodePools).
    """
    if cluster.props.get("enableAutopilot") is True:
        return []
    written = cluster.props.get("nodePools") or ()
    pools = stack.users(cluster, NODE_POOL, "cluster") if written else ()
    others = {name for pool in pools if not is_unknown(name := raw(pool.props, "name"))}
    found = [
        GkePool(cluster, stack, pool, f"nodePools[{index}].")
        for index, pool in enumerate(written)
        if pool.get("name") not in others
    ]
    if not written and cluster.props.get("removeDefaultNodePool") is not True:
        found.append(GkePool(cluster, stack, cluster.props))
    return found


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
