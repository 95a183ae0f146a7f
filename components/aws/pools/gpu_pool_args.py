"""What a GPU pool is made of, and which combinations EC2 or EKS cannot run."""

import re
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from components.aws.pools.nodes import sizes_text
from infra.catalog.aws.model import InstanceType
from infra.errors import Problem

RESERVED_LABELS = "trainstack.dev/"
CAPACITIES = ("on_demand", "spot", "capacity_block", "reserved")
PREPAID = ("capacity_block", "reserved")
_RESERVATION = re.compile(r"cr-[0-9a-f]{8,17}")


class AwsGpuPoolArgs(TypedDict):
    """What an `AwsGpuPool` is made of."""

    pool: str
    """The pool's name: the value of the label `trainstack.dev/pool` on its nodes."""
    purpose: str
    """What the pool is for, such as `training`; a label on its nodes."""
    cluster_name: pulumi.Input[str]
    """The EKS cluster to join."""
    kubernetes_version: pulumi.Input[str]
    """The control plane's version; nodes follow it."""
    node_role_arn: pulumi.Input[str]
    """The cluster's role for nodes."""
    cluster_security_group_id: pulumi.Input[str]
    """The security group EKS made for control plane and nodes."""
    efa_security_group_id: NotRequired[pulumi.Input[str]]
    """The group whose members may exchange EFA traffic; needed with `efa`."""
    instance_type: str
    """An EC2 GPU type of the catalog."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """Private subnets: one with EFA or prepaid capacity, else one per zone to try."""
    efa: bool
    """Attach every EFA device of the type and place the nodes close together."""
    capacity: str
    """How the nodes are paid: `on_demand`, `spot`, `capacity_block` or `reserved` (an own reservation)."""
    reservation_id: NotRequired[str]
    """The Capacity Block or On-Demand Capacity Reservation to launch into; needed for these two."""
    placement_group_name: NotRequired[pulumi.Input[str]]
    """The cluster placement group that a `reserved` reservation was made in, if it was made in one."""
    min_size: int
    """Fewest nodes; 0 lets the pool cost nothing when idle."""
    max_size: int
    """Most nodes."""
    desired_size: int
    """Nodes at creation; later changes are the autoscaler's."""
    disk_gib: int
    """Root disk; it holds container images unless the type has local NVMe disks."""
    labels: Mapping[str, str]
    """Further labels for the nodes; keys must not start with `trainstack.dev/`."""
    tags: Mapping[str, str]
    """Tags for what the provider's default tags do not reach: instances, their disks and interfaces."""


def pool_problems(args: AwsGpuPoolArgs, machine: InstanceType) -> list[Problem]:
    """Every combination in `args` that cannot run, each with the way out."""
    pool = args["pool"]
    problems = [*_efa_problems(args, machine), *_capacity_problems(args, machine)]
    sizes = sizes_text(args["min_size"], args["desired_size"], args["max_size"])
    if sizes:
        found = [args["min_size"], args["desired_size"], args["max_size"]]
        problems.append(Problem(f"{pool}.desired_size", found, sizes, "Change the sizes."))
    if not args["subnet_ids"]:
        problems.append(Problem(f"{pool}.subnet_ids", [], "needs a subnet", "Name a zone."))
    problems += [
        Problem(
            f"{pool}.labels",
            key,
            f"uses the prefix {RESERVED_LABELS} that pools set themselves",
            "Rename it.",
        )
        for key in args["labels"]
        if key.startswith(RESERVED_LABELS)
    ]
    return problems


def _efa_problems(args: AwsGpuPoolArgs, machine: InstanceType) -> list[Problem]:
    if not args["efa"]:
        return []
    path = f"{args['pool']}.efa"
    problems = []
    if not machine.efa:
        fix = "Switch efa off, or choose a type that has it."
        problems.append(Problem(path, machine.name, "this type has no EFA", fix))
    if len(args["subnet_ids"]) > 1:
        rule = "EFA traffic does not leave a subnet, so the pool needs exactly one"
        problems.append(Problem(path, f"{len(args['subnet_ids'])} subnets", rule, "Keep one zone."))
    if "efa_security_group_id" not in args:
        fix = "Pass the network's efa_security_group_id."
        problems.append(Problem(path, None, "needs a security group that lets EFA traffic through", fix))
    return problems


def _capacity_problems(args: AwsGpuPoolArgs, machine: InstanceType) -> list[Problem]:
    pool, capacity, reservation = args["pool"], args["capacity"], args.get("reservation_id")
    problems = []
    if capacity not in CAPACITIES:
        choices = f"Choose from {', '.join(CAPACITIES)}."
        problems.append(Problem(f"{pool}.capacity", capacity, "is no way to pay for nodes", choices))
    if capacity in PREPAID:
        if reservation is None or not _RESERVATION.fullmatch(reservation):
            rule = f"capacity {capacity} launches into a reservation that exists"
            fix = "Name it, like cr-0123456789abcdef0."
            problems.append(Problem(f"{pool}.reservation_id", reservation, rule, fix))
        if len(args["subnet_ids"]) > 1:
            rule = f"capacity {capacity} lies in one zone, so the pool needs exactly one subnet"
            found = f"{len(args['subnet_ids'])} subnets"
            problems.append(Problem(f"{pool}.subnet_ids", found, rule, "Keep the reservation's zone."))
    elif reservation is not None:
        rule = f"capacity {capacity} uses no reservation"
        fix = "Remove it, or set capacity to reserved or capacity_block."
        problems.append(Problem(f"{pool}.reservation_id", reservation, rule, fix))
    if capacity == "capacity_block" and not machine.capacity_block:
        fix = "Choose another capacity or type."
        problems.append(Problem(f"{pool}.capacity", machine.name, "is not sold as a Capacity Block", fix))
    if capacity != "reserved" and "placement_group_name" in args:
        rule = "only a reservation of one's own is made in a placement group"
        path = f"{pool}.placement_group_name"
        problems.append(Problem(path, capacity, rule, "Remove it: the pool makes its own where it helps."))
    return problems
