"""What a GPU pool is made of, and which combinations Compute Engine or GKE cannot run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from components.gcp.pools.args import PoolArgs, common_problems
from components.gcp.pools.config import RESERVED_LABELS
from infra.catalog.gcp import facts
from infra.catalog.gcp.nodes import Node, partitions
from infra.catalog.pools import rdma_zone_problems, reserved_zone_problems
from infra.errors import Problem

CAPACITIES = ("on_demand", "spot", "reserved", "block", "flex_start", "queued")
PREPAID = ("reserved", "block")
# Nodes of Dynamic Workload Scheduler: they start when there are some and end after seven days at most.
DYNAMIC = ("flex_start", "queued")
# A short name is looked up in the cluster's project and fails with blocks (cluster-toolkit#5043).
_RESERVATION = re.compile(
    r"projects/[^/]+/reservations/[a-z][-a-z0-9]*"
    r"(/reservationBlocks/[^/]+(/reservationSubBlocks/[^/]+)?)?"
)
_IMAGE = re.compile(r"projects/[^/]+/global/images/[a-z][-a-z0-9]*")
# The provider's note on gpu_sharing_config and GKE documentation, "GPU time-sharing": most clients of a GPU.
_CLIENTS = (2, 48)
_DRIVERS = ("default", "latest")
# Machines whose networks GKE makes by itself with DRANET (GKE documentation, "Allocate network resources").
MANAGED_FAMILIES = ("a3-ultragpu-", "a4-", "a4x-")
# A rack of NVL72 has 18 machines of 4 GPUs.
_RACK_NODES = 18


class AttachmentArgs(TypedDict):
    """An additional network interface of every node."""

    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]


class SharingArgs(TypedDict):
    """How pods share a GPU."""

    kind: str
    """`time_sharing`: pods take turns, and share memory and faults. `mig`: each has a part of its own."""
    clients: NotRequired[int]
    """Pods per GPU; with `time_sharing`."""
    partition: NotRequired[str]
    """Size of a part, such as `1g.10gb`; with `mig`."""


class GcpGpuPoolArgs(PoolArgs):
    """What a `GcpGpuPool` is made of.

    `capacity` is `on_demand`, `spot`, `reserved` (a reservation of one's own), `block` (the reservation that
    a future reservation in calendar mode makes), `flex_start` or `queued`.
    """

    driver: str
    """Which NVIDIA driver GKE installs: `default` for the version of the nodes, or `latest`."""
    reservation: NotRequired[str]
    """The reservation, `projects/<project>/reservations/<name>`, with `/reservationBlocks/<block>` where one
    is meant; needed with `reserved` and `block`."""
    rdma: bool
    """Whether nodes get the networks of their GPUs."""
    attachments: NotRequired[Sequence[AttachmentArgs]]
    """These networks, in the order of interfaces, where the stack makes them; with `rdma`. Default: GKE makes
    them, and pods claim the devices (DRANET)."""
    compact: bool
    """Whether nodes are placed close together, for machines without networks of their GPUs."""
    sharing: NotRequired[SharingArgs]
    """How pods share a GPU. Default: each has its own."""
    local_ssds: NotRequired[int]
    """Local SSDs for what pods write to their disk. Default: as many as the type always has."""
    image_cache: NotRequired[str]
    """A disk image that holds container images: `projects/<project>/global/images/<name>`. Default: none."""
    labels: Mapping[str, str]
    """Further labels for the nodes; keys must not start with `trainstack.dev/`."""


def pool_problems(args: GcpGpuPoolArgs, node: Node) -> list[Problem]:
    """Every combination in `args` that cannot run, each with the way out."""
    return [
        *common_problems(args),
        *_capacity_problems(args, node),
        *(_network_problems(args, node) if args["rdma"] else _unused_networks(args)),
        *(_placement_problems(args) if args["compact"] else ()),
        *_sharing_problems(args, node),
        *_disk_problems(args, node),
        *_label_problems(args),
    ]


def managed(args: GcpGpuPoolArgs) -> bool:
    """Whether GKE makes the networks of the pool's GPUs."""
    return args["rdma"] and "attachments" not in args


def _capacity_problems(args: GcpGpuPoolArgs, node: Node) -> Iterator[Problem]:
    pool, capacity, reservation = args["pool"], args["capacity"], args.get("reservation")
    if capacity not in CAPACITIES:
        fix = f"Choose from {', '.join(CAPACITIES)}."
        yield Problem(f"{pool}.capacity", capacity, "unknown kind of capacity", fix)
    if capacity in PREPAID:
        yield from reserved_zone_problems(f"{pool}.zones", len(args["zones"]))
        if reservation is None or not _RESERVATION.fullmatch(reservation):
            fix = (
                "Write it like projects/acme-ml/reservations/h100, with /reservationBlocks/<block> if meant."
            )
            rule = "must be the full name of a reservation"
            yield Problem(f"{pool}.reservation", reservation, rule, fix)
    elif reservation is not None:
        fix = "Remove it, or start the nodes in the reservation."
        yield Problem(f"{pool}.reservation", reservation, f"{capacity} nodes use none", fix)
    if capacity == "queued" and args["min_size"]:
        rule = "queued nodes only start for jobs"
        yield Problem(f"{pool}.min_size", args["min_size"], rule, "Set 0.", against=f"{pool}.capacity")
    if args["driver"] not in _DRIVERS:
        fix = f"Choose from {', '.join(_DRIVERS)}."
        yield Problem(f"{pool}.driver", args["driver"], "GKE knows no such driver", fix)
    if node.topology and args["rdma"] and args["max_size"] > _RACK_NODES:
        rule = f"a policy of {node.topology} GPUs places at most {_RACK_NODES} machines: one rack"
        fix = f"Set {_RACK_NODES}, and make another pool for another rack."
        yield Problem(f"{pool}.max_size", args["max_size"], rule, fix)


def _network_problems(args: GcpGpuPoolArgs, node: Node) -> Iterator[Problem]:
    pool, machine = args["pool"], args["machine"]
    yield from rdma_zone_problems(f"{pool}.zones", len(args["zones"]))
    if node.fabric is None:
        fix = f"Set {pool}.rdma to false; for machines close together set compact."
        yield Problem(f"{pool}.rdma", True, f"{machine} has no networks of its GPUs", fix)
        return
    if managed(args):
        if not machine.startswith(MANAGED_FAMILIES):
            fix = "Pass the attachments of GcpAcceleratorNetworks."
            yield Problem(f"{pool}.attachments", None, f"GKE makes no networks for {machine}", fix)
        return
    known = facts.gpu_networks.get(machine)
    given = len(args["attachments"])
    if known is None:
        yield Problem(f"{pool}.attachments", given, f"GKE makes the networks of {machine}", "Remove them.")
    elif given != known.total:
        rule = f"{machine} takes {known.total} networks besides the cluster's"
        yield Problem(f"{pool}.attachments", given, rule, "Pass those of GcpAcceleratorNetworks.")


def _unused_networks(args: GcpGpuPoolArgs) -> Iterator[Problem]:
    if "attachments" in args:
        path = f"{args['pool']}.attachments"
        yield Problem(path, len(args["attachments"]), "without rdma nodes have none", "Remove them.")


def _placement_problems(args: GcpGpuPoolArgs) -> Iterator[Problem]:
    path, capacity = f"{args['pool']}.compact", args["capacity"]
    if capacity in DYNAMIC:
        fix = "Set it to false, or buy the nodes in another way."
        yield Problem(path, True, f"{capacity} nodes cannot be placed", fix)
    if capacity in PREPAID:
        fix = "Set it to false."
        yield Problem(path, True, "a reservation lies where it was made", fix)
    if len(args["zones"]) > 1:
        yield Problem(path, True, "compact placement is within one zone", "Keep one zone.")
    if args["rdma"]:
        rule = "machines with networks of their GPUs are placed by these"
        yield Problem(path, True, rule, "Set it to false.")


def _sharing_problems(args: GcpGpuPoolArgs, node: Node) -> Iterator[Problem]:
    if "sharing" not in args:
        return
    pool, sharing = args["pool"], args["sharing"]
    path = f"{pool}.sharing"
    if args["purpose"] != "interactive":
        rule = f"a pool for {args['purpose']} has whole GPUs"
        yield Problem(path, sharing["kind"], rule, "Remove it, or make an interactive pool.")
    if args["rdma"]:
        yield Problem(path, sharing["kind"], "parts of GPUs use no RDMA", f"Set {pool}.rdma to false.")
    if sharing["kind"] == "time_sharing":
        clients = sharing.get("clients", 0)
        least, most = _CLIENTS
        if not least <= clients <= most:
            fix = f"Set {min(max(least, clients), most)}."
            yield Problem(f"{path}.clients", clients, f"must be {least} to {most} pods per GPU", fix)
    elif sharing["kind"] == "mig":
        known = partitions().get(node.accelerator)
        sizes = list(known.parts) if known else []
        if sharing.get("partition") not in sizes:
            fix = f"Choose from {', '.join(sizes)}." if sizes else "Use time_sharing, or another machine."
            rule = f"{node.accelerator} cannot be cut so"
            yield Problem(f"{path}.partition", sharing.get("partition"), rule, fix)
    else:
        fix = "Choose time_sharing or mig."
        yield Problem(f"{path}.kind", sharing["kind"], "unknown way to share a GPU", fix)


def _disk_problems(args: GcpGpuPoolArgs, node: Node) -> Iterator[Problem]:
    pool, image = args["pool"], args.get("image_cache")
    if "local_ssds" in args and not node.ssds_are_chosen and args["local_ssds"] != node.local_ssds:
        rule = f"{args['machine']} always has {node.local_ssds or 'the same number'} of them"
        yield Problem(f"{pool}.local_ssds", args["local_ssds"], rule, "Remove it.")
    if image is not None and not _IMAGE.fullmatch(image):
        rule = "must be the full name of a disk image"
        yield Problem(f"{pool}.image_cache", image, rule, "Write projects/<project>/global/images/<name>.")


def _label_problems(args: GcpGpuPoolArgs) -> Iterator[Problem]:
    for key in args["labels"]:
        if key.startswith(RESERVED_LABELS):
            rule = f"the prefix {RESERVED_LABELS} is reserved for pools"
            yield Problem(f"{args['pool']}.labels", key, rule, "Rename it.")
