"""Arguments of a GPU pool on EKS, and combinations that EC2 or EKS cannot run."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from components.aws.pools.live_size import LiveSizeArgs, shrinking_problems
from components.kubernetes import gpu_sharing
from components.kubernetes.gpu_sharing import SharingArgs
from infra.catalog.aws import facts, pools
from infra.catalog.aws.model import InstanceType
from infra.catalog.pools import (
    label_problems,
    order_problems,
    rdma_zone_problems,
    reserved_zone_problems,
)
from infra.errors import Problem

PURCHASES = ("on_demand", "spot", "block", "reserved")
PREPAID = ("block", "reserved")


class RepairRuleArgs(TypedDict):
    """EKS's action for one kind of fault, instead of its default."""

    condition: str
    """The node's condition, such as `AcceleratedHardwareReady`."""
    reason: str
    """The monitor's name of the fault, such as `NvidiaXID79Error`."""
    after_minutes: int
    """Minutes for which the fault must last."""
    action: str
    """`Replace`, `Reboot` or `NoAction`."""


class RepairArgs(TypedDict):
    """Automatic repair of unhealthy nodes."""

    at_once: int
    """Nodes that are repaired at the same time."""
    stop_above: int
    """With more unhealthy nodes than this, nothing is repaired."""
    rules: Sequence[RepairRuleArgs]
    """Actions for single kinds of fault. Empty: the defaults of EKS."""


class AwsGpuPoolArgs(TypedDict):
    """Arguments of an `AwsGpuPool`."""

    pool: str
    """The pool's name: the value of the label `trainstack.dev/pool` on its nodes."""
    purpose: str
    """Purpose of the pool, such as `training`; a label on its nodes."""
    cluster_name: pulumi.Input[str]
    """The EKS cluster to join."""
    kubernetes_version: pulumi.Input[str]
    """The control plane's version; nodes follow it."""
    node_image: NotRequired[str]
    """Release of EKS's node images, such as `1.35.6-20260714`. Default: the newest when the group is made."""
    node_role_arn: pulumi.Input[str]
    """The cluster's role for nodes."""
    cluster_security_group_id: pulumi.Input[str]
    """The security group EKS made for control plane and nodes."""
    efa_security_group_id: NotRequired[pulumi.Input[str]]
    """The group whose members may exchange EFA traffic; needed with `rdma`."""
    machine: str
    """An EC2 GPU type of the catalog."""
    subnets: Mapping[str, pulumi.Input[str]]
    """Private subnets by zone, each with a node group: one with RDMA or prepaid nodes, else several."""
    rdma: bool
    """Attach every EFA device of the type and place the nodes close together."""
    lustre_over_efa: NotRequired[bool]
    """With `rdma`: let Lustre's client use these devices. Default: it uses TCP."""
    sharing: NotRequired[SharingArgs]
    """Sharing of GPUs; interactive pools only, without `rdma`. The cluster's `Accelerators` need it too.
    Default: each pod has its own."""
    purchase: str
    """Kind of purchase: `on_demand`, `spot`, `block` (a Capacity Block) or `reserved` (a reservation)."""
    reservation_id: NotRequired[str]
    """The Capacity Block or On-Demand Capacity Reservation to launch into; needed for these two."""
    placement_group_name: NotRequired[pulumi.Input[str]]
    """The cluster placement group that a `reserved` reservation was made in, if it was made in one."""
    min_nodes: int
    """Fewest nodes; 0 lets the pool cost nothing when idle."""
    max_nodes: int
    """Most nodes of the pool; each zone can have all of them."""
    live: NotRequired[Mapping[str, LiveSizeArgs]]
    """Node groups as they are now, by zone; absent before they exist."""
    disk_gib: int
    """Root disk; it holds container images unless the type has local NVMe disks."""
    disk_key_arn: pulumi.Input[str]
    """Key of root disks: one that EC2 Auto Scaling may use."""
    repair: RepairArgs
    """Automatic repair of unhealthy nodes."""
    labels: Mapping[str, str]
    """Further labels for the nodes; keys must not start with `trainstack.dev/`."""
    tags: Mapping[str, str]
    """Tags of instances, their disks and interfaces, which the provider cannot set. A change replaces every
    node."""
    launch_tags: Mapping[str, str]
    """Tags of instances that start from now on; a change does not affect running nodes."""
    cluster: NotRequired[str]
    """Name of the cluster among several ones, the value of `trainstack.dev/cluster` on its nodes. Default: no
    such label."""


def pool_problems(args: AwsGpuPoolArgs, machine: InstanceType) -> list[Problem]:
    """Every combination in `args` that cannot run, each with its fix."""
    pool, purchase, zones = args["pool"], args["purchase"], len(args["subnets"])
    least, most = args["min_nodes"], args["max_nodes"]
    problems = [
        *(pools.efa_problems(f"{pool}.rdma", machine) if args["rdma"] else ()),
        *(rdma_zone_problems(f"{pool}.subnets", zones) if args["rdma"] else ()),
        *(reserved_zone_problems(f"{pool}.subnets", zones) if purchase in PREPAID else ()),
        *_purchase_problems(args, machine),
        *(_sharing_problems(args, args["sharing"], machine) if "sharing" in args else ()),
        *pools.size_problems(f"{pool}.min_nodes", least, f"{pool}.max_nodes", most),
        *order_problems(f"{pool}.min_nodes", least, f"{pool}.max_nodes", most),
        *shrinking_problems(f"{pool}.max_nodes", most, args.get("live", {}).values()),
        *facts.limits["root_volume_gib"].problems(f"{pool}.disk_gib", args["disk_gib"]),
        *label_problems(f"{pool}.labels", args["labels"]),
    ]
    if not zones:
        rule, fix = "needs a subnet", "Name a zone."
        problems.append(Problem(f"{pool}.subnets", [], rule, fix, code="pool-without-subnets"))
    if args["rdma"] and "efa_security_group_id" not in args:
        fix = "Pass the network's efa_security_group_id."
        rule = "needs a security group that lets EFA traffic through"
        problems.append(Problem(f"{pool}.rdma", None, rule, fix, code="rdma-without-security-group"))
    if purchase != "reserved" and "placement_group_name" in args:
        rule = "only a reservation of one's own is made in a placement group"
        path, fix = f"{pool}.placement_group_name", "Remove it: the pool makes its own where it helps."
        problems.append(Problem(path, purchase, rule, fix, code="placement-group-without-reservation"))
    return problems


def _sharing_problems(args: AwsGpuPoolArgs, sharing: SharingArgs, machine: InstanceType) -> Iterator[Problem]:
    parts = functools.partial(pools.partition_problems, machine=machine)
    yield from gpu_sharing.problems(
        args["pool"], sharing, purpose=args["purpose"], rdma=args["rdma"], parts=parts
    )
    if sharing["kind"] == "time_sharing":
        yield from pools.turns_problems(f"{args['pool']}.sharing.clients", sharing.get("clients", 0), machine)


def _purchase_problems(args: AwsGpuPoolArgs, machine: InstanceType) -> Iterator[Problem]:
    path, purchase, reservation = args["pool"], args["purchase"], args.get("reservation_id")
    if purchase not in PURCHASES:
        rule, fix = "unknown way to buy nodes", f"Choose from {', '.join(PURCHASES)}."
        yield Problem(f"{path}.purchase", purchase, rule, fix, code="unknown-purchase-kind")
    if purchase == "block":
        yield from pools.block_problems(f"{path}.purchase", machine)
    if purchase in PREPAID:
        yield from pools.reservation_problems(f"{path}.reservation_id", reservation)
    elif reservation is not None:
        fix = "Remove it, or launch the nodes into the reservation."
        rule = f"{purchase} nodes use none"
        yield Problem(f"{path}.reservation_id", reservation, rule, fix, code="unused-reservation")
