"""What one node offers to jobs, in the terms of Kubernetes: stated once by a cloud, read by components."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from smoke_training.fabric import Fabric


class FabricOffer(TypedDict):
    """The network between nodes that carries training traffic, and how pods get its devices."""

    kind: Fabric
    """Which network it is."""
    resource: str
    """The name that quotas count its devices by, and that pods request unless devices are claimed."""
    count: int
    """Devices per node."""
    pod_resources: Mapping[str, str]
    """What a pod requests besides the devices, as Kubernetes quantities."""
    device_class: NotRequired[str]
    """Pods claim devices of this class (Dynamic Resource Allocation) instead of requesting `resource`."""


class NodeOffer(TypedDict):
    """What jobs may request of one node."""

    cpu: int
    """Cores."""
    memory_gib: int
    """Memory, GiB."""
    gpus: int
    """GPUs; 0 for a node without."""
    fabric: NotRequired[FabricOffer]
    """Default: the ordinary network interfaces, which need no request."""


def claimed(fabric: FabricOffer) -> bool:
    """Whether pods get the devices by claim."""
    return "device_class" in fabric


def devices(fabric: FabricOffer | None) -> dict[str, str]:
    """What a pod requests for a node's part of the fabric; None where there is none."""
    if fabric is None:
        return {}
    requested = {} if claimed(fabric) else {fabric["resource"]: str(fabric["count"])}
    return {**fabric["pod_resources"], **requested}
