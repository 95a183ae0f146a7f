"""What one node offers to jobs, in the terms of Kubernetes: stated once by a cloud, read by components."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from smoke_training.fabric import Fabric
from smoke_training.launchers.fabrics import PodNeeds


class FabricOffer(TypedDict):
    """The network between nodes that carries training traffic, and how pods get its devices."""

    kind: Fabric
    """Which network it is."""
    resource: NotRequired[str]
    """The name that quotas count its devices by, and that pods request unless devices are claimed. Default:
    quotas do not count them: who has a node's GPUs has them too."""
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
    """GPUs as pods count them: several share one, or each has a part of one, where the pool says so; 0 for a
    node without."""
    gpus_per_pod: NotRequired[int]
    """Most of them that one pod may ask for, where the device plugin refuses more. Default: all of them."""
    shared: NotRequired[bool]
    """Whether pods share GPUs or have parts of them, so that no run is given whole nodes. Default: no."""
    ephemeral_gib: NotRequired[int]
    """Disk that pods may fill, GiB; it goes with the node. Default: unknown."""
    pod: NotRequired[PodNeeds]
    """What pods need on such a node besides what they request. Default: nothing."""
    fabric: NotRequired[FabricOffer]
    """Default: the ordinary network interfaces, which need no request."""


def claimed(fabric: FabricOffer) -> bool:
    """Whether pods get the devices by claim."""
    return "device_class" in fabric


def devices(fabric: FabricOffer | None) -> dict[str, str]:
    """What a pod requests for a node's part of the fabric; None where there is none."""
    if fabric is None:
        return {}
    requested = {} if claimed(fabric) else {name: str(count) for name, count in counted(fabric).items()}
    return {**fabric["pod_resources"], **requested}


def counted(fabric: FabricOffer | None) -> dict[str, int]:
    """The devices of a node that quotas count, by the name of their resource."""
    return {fabric["resource"]: fabric["count"]} if fabric and "resource" in fabric else {}


def beside(offer: NodeOffer) -> tuple[int, int]:
    """Cores and GiB that a pod on a whole node takes besides those of its run: its sidecar's."""
    sidecar = offer["pod"].get("sidecar") if "pod" in offer else None
    return (sidecar["cpu"], sidecar["memory_gib"]) if sidecar else (0, 0)
