"""Arguments of a GPU pool on GKE, and combinations that Compute Engine or GKE cannot run."""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from components.gcp.pools.args import PoolArgs, common_problems
from components.kubernetes import gpu_sharing
from components.kubernetes.gpu_sharing import SharingArgs
from infra.catalog.gcp import fabrics, facts, pools
from infra.catalog.gcp.model import MachineType
from infra.catalog.pools import (
    label_problems,
    rdma_zone_problems,
    reserved_zone_problems,
)
from infra.errors import Problem

_IMAGE = re.compile(r"projects/[^/]+/global/images/[a-z][-a-z0-9]*")
_DRIVERS = ("default", "latest")


class AttachmentArgs(TypedDict):
    """An additional network interface of every node."""

    network: pulumi.Input[str]
    """The network of the interface."""
    subnetwork: pulumi.Input[str]
    """The subnetwork of the interface."""


class GcpGpuPoolArgs(PoolArgs):
    """Arguments of a `GcpGpuPool`.

    `purchase` is `on_demand`, `spot`, `reserved` (a reservation of one's own), `block` (the reservation that
    a future reservation in calendar mode makes), `flex_start` or `queued`.
    """

    driver: str
    """NVIDIA driver that GKE installs: `default` for the version of the nodes, or `latest`."""
    reservation_id: NotRequired[str]
    """The reservation, `projects/<project>/reservations/<name>`, with `/reservationBlocks/<block>` for a
    block; needed with `reserved` and `block`."""
    rdma: bool
    """Whether nodes get the networks of their GPUs."""
    attachments: NotRequired[Sequence[AttachmentArgs]]
    """These networks, in the order of interfaces, where the stack creates them; with `rdma`. Default: GKE
    creates them, and pods claim the devices (DRANET)."""
    compact: bool
    """Whether nodes are placed close together, for machines without networks of their GPUs."""
    sharing: NotRequired[SharingArgs]
    """Sharing of GPUs. Default: each pod has its own."""
    local_ssds: NotRequired[int]
    """Local SSDs for ephemeral storage of pods. Default: as many as the type always has."""
    image_cache: NotRequired[str]
    """A disk image that holds container images: `projects/<project>/global/images/<name>`. Default: none."""
    labels: Mapping[str, str]
    """Further labels for the nodes; keys must not start with `trainstack.dev/`."""


def pool_problems(args: GcpGpuPoolArgs, machine: MachineType) -> list[Problem]:
    """Every combination in `args` that cannot run, each with its fix."""
    return [
        *common_problems(args),
        *pools.refused_problems(f"{args['pool']}.machine", machine),
        *_purchase_problems(args),
        *(_network_problems(args, machine) if args["rdma"] else _unused_networks(args)),
        *(_placement_problems(args) if args["compact"] else ()),
        *(_sharing_problems(args, args["sharing"], machine) if "sharing" in args else ()),
        *_disk_problems(args),
        *label_problems(f"{args['pool']}.labels", args["labels"]),
    ]


def managed(args: GcpGpuPoolArgs) -> bool:
    """Return whether GKE creates the networks of the pool's GPUs."""
    return args["rdma"] and "attachments" not in args


def _purchase_problems(args: GcpGpuPoolArgs) -> Iterator[Problem]:
    pool, purchase = args["pool"], args["purchase"]
    if purchase not in pools.KINDS:
        rule, fix = "unknown way to buy nodes", f"Choose from {', '.join(pools.KINDS)}."
        yield Problem(f"{pool}.purchase", purchase, rule, fix, code="unknown-purchase-kind")
    else:
        yield from pools.purchase_problems(f"{pool}.purchase", purchase, args["machine"])
    if args["rdma"]:
        yield from pools.gang_problems(f"{pool}.purchase", purchase, f"{pool}.rdma", args["max_nodes"])
    if purchase in pools.PREPAID:
        yield from reserved_zone_problems(f"{pool}.zones", len(args["zones"]))
    yield from pools.reservation_problems(f"{pool}.reservation_id", purchase, args.get("reservation_id"))
    yield from pools.queued_problems(f"{pool}.purchase", purchase, f"{pool}.min_nodes", args["min_nodes"])
    if args["driver"] not in _DRIVERS:
        rule, fix = "unknown driver of GKE", f"Choose from {', '.join(_DRIVERS)}."
        yield Problem(f"{pool}.driver", args["driver"], rule, fix, code="unknown-gpu-driver")


def _network_problems(args: GcpGpuPoolArgs, machine: MachineType) -> Iterator[Problem]:
    pool = args["pool"]
    yield from rdma_zone_problems(f"{pool}.zones", len(args["zones"]))
    yield from fabrics.rdma_problems(f"{pool}.rdma", machine)
    if machine.fabric is not None:
        given = None if managed(args) else len(args["attachments"])
        yield from fabrics.attachment_problems(f"{pool}.attachments", machine.name, given)


def _unused_networks(args: GcpGpuPoolArgs) -> Iterator[Problem]:
    if "attachments" in args:
        path = f"{args['pool']}.attachments"
        rule = "without rdma nodes have none"
        yield Problem(path, len(args["attachments"]), rule, "Remove them.", code="attachments-without-rdma")


def _placement_problems(args: GcpGpuPoolArgs) -> Iterator[Problem]:
    pool, zones = args["pool"], len(args["zones"])
    path = f"{pool}.compact"
    yield from pools.compact_problems(path, f"{pool}.purchase", args["purchase"], f"{pool}.zones", zones)
    if args["rdma"]:
        yield from pools.rdma_compact_problems(path, f"{pool}.rdma", args["machine"])


def _sharing_problems(args: GcpGpuPoolArgs, sharing: SharingArgs, machine: MachineType) -> Iterator[Problem]:
    parts = functools.partial(pools.partition_problems, machine=machine)
    yield from gpu_sharing.problems(
        args["pool"], sharing, purpose=args["purpose"], rdma=args["rdma"], parts=parts
    )
    partition = sharing.get("partition")
    if partition in {*facts.accelerators[machine.accelerator].mig, None}:
        shares = pools.gpus_of_node(machine, clients=sharing.get("clients"), partition=partition)
        yield from pools.share_problems(f"{args['pool']}.sharing", shares, machine, args["pods_per_node"])


def _disk_problems(args: GcpGpuPoolArgs) -> Iterator[Problem]:
    pool, image = args["pool"], args.get("image_cache")
    if "local_ssds" in args:
        yield from pools.local_ssd_problems(f"{pool}.local_ssds", args["local_ssds"], args["machine"])
    if image is not None and not _IMAGE.fullmatch(image):
        rule = "must be the full name of a disk image"
        fix = "Write projects/<project>/global/images/<name>."
        yield Problem(f"{pool}.image_cache", image, rule, fix, code="invalid-image-cache")
