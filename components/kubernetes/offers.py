"""The resources of one node for jobs, in the terms of Kubernetes: stated by a cloud, read by components."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from infra.launchers.fabrics import PodNeeds
from smoke_training.fabric import Fabric


class FabricOffer(TypedDict):
    """The network between nodes that carries training traffic, and how pods get its devices."""

    kind: Fabric
    """The kind of network."""
    resource: NotRequired[str]
    """The resource as which quotas count its devices, and which pods request unless devices are claimed.
    Default: quotas do not count them, because they belong to the node's GPUs."""
    count: int
    """Devices per node."""
    pod_resources: Mapping[str, str]
    """Further requests of a pod, as Kubernetes quantities."""
    device_class: NotRequired[str]
    """Pods claim devices of this class (Dynamic Resource Allocation) instead of requesting `resource`."""


class NodeOffer(TypedDict):
    """The resources of one node that jobs may request."""

    cpu: int
    """Cores."""
    memory_gib: int
    """Memory, GiB."""
    gpus: int
    """GPUs as pods count them: where the pool is configured so, several pods share one, or each has a part; 0
    for a node without."""
    gpus_per_pod: NotRequired[int]
    """Most of them for one pod, where the device plugin limits it. Default: all of them."""
    shared: NotRequired[bool]
    """Whether pods share GPUs or have parts of them, so that no run gets whole nodes. Default: no."""
    ephemeral_gib: NotRequired[int]
    """Disk for pods, GiB; deleted with the node. Default: unknown."""
    pod: NotRequired[PodNeeds]
    """Further settings of pods on such a node. Default: none."""
    fabric: NotRequired[FabricOffer]
    """Default: the ordinary network interfaces, which need no request."""


def claimed(fabric: FabricOffer) -> bool:
    """Return whether pods claim the devices."""
    return "device_class" in fabric


def devices(fabric: FabricOffer | None) -> dict[str, str]:
    """Requests of a pod for a node's part of the fabric; empty without one."""
    if fabric is None:
        return {}
    requested = {} if claimed(fabric) else {name: str(count) for name, count in counted(fabric).items()}
    return {**fabric["pod_resources"], **requested}


def counted(fabric: FabricOffer | None) -> dict[str, int]:
    """The devices of a node that quotas count, by the name of their resource."""
    return {fabric["resource"]: fabric["count"]} if fabric and "resource" in fabric else {}


def beside(offer: NodeOffer) -> tuple[int, int]:
    """Cores and GiB that a sidecar on a whole node takes besides the run."""
    sidecar = offer["pod"].get("sidecar") if "pod" in offer else None
    return (sidecar["cpu"], sidecar["memory_gib"]) if sidecar else (0, 0)
