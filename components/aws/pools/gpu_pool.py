"""A group of identical GPU nodes: fabric, placement, payment, and labels and taints for schedulers."""

import pulumi
import pulumi_aws as aws

from agents.clusters.dispatch import CLUSTER_LABEL
from components.aws.pools import efa, nodes
from components.aws.pools.gpu_pool_args import PREPAID, AwsGpuPoolArgs, RepairArgs, pool_problems
from components.aws.pools.user_data import encoded, node_user_data
from components.aws.pools.zone_groups import ZoneGroup, zone_groups
from components.base import Component, Options
from components.kubernetes.gpu_sharing import CONFIG_LABEL, shared_config
from infra.catalog.aws import facts
from infra.catalog.aws.model import InstanceType
from infra.catalog.aws.pools import gpus_of_node, partitions_of_gpu
from infra.catalog.pools import RESERVED_LABELS
from infra.errors import UserError
from smoke_training.fabric import Fabric

TAINT_KEY = "nvidia.com/gpu"
TAINT_VALUE = "present"
_AMI_TYPES = {"x86_64": "AL2023_x86_64_NVIDIA", "arm64": "AL2023_ARM_64_NVIDIA"}
_CAPACITY_TYPES = {
    "on_demand": "ON_DEMAND",
    "reserved": "ON_DEMAND",  # to EKS a reservation is on-demand; the launch template names it
    "spot": "SPOT",
    "block": "CAPACITY_BLOCK",
}
# One drained node ends a job that spans the pool, so going node by node only makes the interruption longer.
_UPDATED_AT_ONCE_PERCENT = 33


class AwsGpuPool(Component):
    """EKS managed node groups with their launch template and, for EFA, their placement group.

    Raises UserError with every impossible combination; UnknownFactError for a type the catalog lacks.
    """

    node_group_names: pulumi.Output[list[str]]
    """Names of the node groups in the cluster, one per zone."""
    labels: dict[str, str]
    """The labels of every node, for selectors of pods and resource flavors."""
    taints: dict[str, str]
    """The taints of every node by key, as `value:Effect`."""

    def __init__(self, name: str, args: AwsGpuPoolArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        machine = facts.instance_type(args["machine"])
        problems = pool_problems(args, machine)
        if problems:
            raise UserError(problems)
        self._prefix = name
        self.labels = node_labels(args, machine)
        self.taints = {TAINT_KEY: f"{TAINT_VALUE}:NoSchedule"}
        template = self._launch_template(args, machine)
        least, most, live = args["min_nodes"], args["max_nodes"], args.get("live")
        self.node_groups = [
            self._node_group(zone, args, machine, template)
            for zone in zone_groups(name, args["subnets"], least, most, live)
        ]
        self.node_group_names = pulumi.Output.all(*(group.node_group_name for group in self.node_groups))
        self.register_declared()

    def _launch_template(self, args: AwsGpuPoolArgs, machine: InstanceType) -> aws.ec2.LaunchTemplate:
        interfaces = None
        if args["rdma"]:
            groups = [args["cluster_security_group_id"], args["efa_security_group_id"]]
            interfaces = efa.network_interfaces(machine, groups)
        user_data = node_user_data(
            local_nvme=bool(machine.local_nvme_gb),
            with_efa=args["rdma"],
            lustre_over_efa=args.get("lustre_over_efa", False),
            shared="sharing" in args,
            partitions=partitions_of_gpu(machine, args["sharing"].get("partition"))
            if "sharing" in args
            else (),
        )
        return aws.ec2.LaunchTemplate(
            f"{self._prefix}-nodes",
            description=f"{args['pool']}: {machine.name}, {_capacity(args)}",
            update_default_version=True,
            # Here and not on the node group: a change of type then updates the group instead of replacing it,
            # and a Capacity Block is accepted only here.
            instance_type=machine.name,
            # Without a list of interfaces EKS adds the cluster's security group itself.
            network_interfaces=interfaces,
            placement=self._placement(args, machine),
            capacity_reservation_specification=_reservation(args),
            instance_market_options=_market(args),
            block_device_mappings=[nodes.root_volume(args["disk_gib"], args["disk_key_arn"])],
            metadata_options=nodes.metadata_options(),
            tag_specifications=nodes.tag_specifications(self._prefix, args["tags"]),
            user_data=encoded(user_data),
            opts=self.child(),
        )

    def _placement(
        self, args: AwsGpuPoolArgs, machine: InstanceType
    ) -> aws.ec2.LaunchTemplatePlacementArgs | None:
        """A cluster placement group for EFA, unless the placement is fixed already.

        AWS places a Capacity Block itself; a reservation has its placement, and a group of our own could only
        prevent nodes from reaching it.
        """
        if "placement_group_name" in args:
            return aws.ec2.LaunchTemplatePlacementArgs(group_name=args["placement_group_name"])
        if not args["rdma"] or args["purchase"] in PREPAID or not machine.supports_cluster_placement:
            return None
        group = aws.ec2.PlacementGroup(f"{self._prefix}-close", strategy="cluster", opts=self.child())
        return aws.ec2.LaunchTemplatePlacementArgs(group_name=group.name)

    def _node_group(
        self,
        zone: ZoneGroup,
        args: AwsGpuPoolArgs,
        machine: InstanceType,
        template: aws.ec2.LaunchTemplate,
    ) -> aws.eks.NodeGroup:
        group = aws.eks.NodeGroup(
            zone.name,
            cluster_name=args["cluster_name"],
            node_role_arn=args["node_role_arn"],
            subnet_ids=[zone.subnet_id],
            version=args["kubernetes_version"],
            release_version=args.get("node_image"),
            ami_type=_AMI_TYPES[machine.architecture],
            capacity_type=_CAPACITY_TYPES[args["purchase"]],
            launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
                id=template.id, version=template.latest_version.apply(str)
            ),
            scaling_config=zone.size.config,
            update_config=aws.eks.NodeGroupUpdateConfigArgs(
                max_unavailable_percentage=_UPDATED_AT_ONCE_PERCENT,
                # Old nodes end before new ones start: spare GPUs for both are rarely available, and prepaid
                # capacity has none (botocore 1.44.5 eks/2017-11-01 NodegroupUpdateConfig, read 2026-11-23).
                update_strategy="MINIMAL",
            ),
            node_repair_config=_repair(args["repair"]),
            labels=self.labels,
            # Keeps pods without a GPU request off these nodes.
            taints=[aws.eks.NodeGroupTaintArgs(key=TAINT_KEY, value=TAINT_VALUE, effect="NO_SCHEDULE")],
            opts=self.child(
                pulumi.ResourceOptions(
                    # The autoscaler owns the size after creation; a deployment must not end running jobs.
                    ignore_changes=zone.size.ignored,
                    delete_before_replace=args["purchase"] in PREPAID,
                    aliases=zone.aliases,
                )
            ),
        )
        tags = zone.tags(self, group)
        tags.at_launch(args["launch_tags"])
        offers = _offers(args, machine)
        if offers:
            tags.for_autoscaler(offers, prefix="offers-")
        return group


def _offers(args: AwsGpuPoolArgs, machine: InstanceType) -> dict[str, str]:
    """Resources of a node for Cluster Autoscaler, which reads them nowhere else while a group is empty.

    It reads processors, memory and GPUs from EC2 and labels and taints from EKS, but not the resources of
    a device plugin or the kernel, and would never scale up for a pod that requests them. It would start a
    node for each pod that shares a GPU (Azure/AKS issue 3427); a tag takes precedence over EC2's number of
    GPUs (kubernetes/autoscaler cloudprovider/aws/aws_manager.go, buildNodeFromTemplate).
    """
    if "sharing" in args:
        sharing = args["sharing"]
        shares = gpus_of_node(machine, clients=sharing.get("clients"), partition=sharing.get("partition"))
        return {f"resources/{TAINT_KEY}": str(shares)}
    if not args["rdma"]:
        return {}
    return {
        "resources/vpc.amazonaws.com/efa": str(machine.efa_interfaces),
        "resources/hugepages-2Mi": f"{efa.HUGE_PAGES * efa.HUGE_PAGE_MIB}Mi",
    }


def node_labels(args: AwsGpuPoolArgs, machine: InstanceType) -> dict[str, str]:
    """The labels of a pool's nodes.

    `k8s.amazonaws.com/accelerator` makes Cluster Autoscaler wait for the device plugin of a new node
    instead of starting yet another one (its AWS README, "Special note on GPU instances").
    """
    shared = {CONFIG_LABEL: shared_config(args["sharing"])} if "sharing" in args else {}
    return {
        **args["labels"],
        **shared,
        **({CLUSTER_LABEL: args["cluster"]} if "cluster" in args else {}),
        f"{RESERVED_LABELS}pool": args["pool"],
        f"{RESERVED_LABELS}purpose": args["purpose"],
        f"{RESERVED_LABELS}accelerator": machine.accelerator,
        f"{RESERVED_LABELS}capacity": _capacity(args).replace("_", "-"),
        f"{RESERVED_LABELS}fabric": Fabric.EFA if args["rdma"] else Fabric.TCP,
        "k8s.amazonaws.com/accelerator": machine.accelerator,
    }


def _capacity(args: AwsGpuPoolArgs) -> str:
    """The purchase as EKS names it, in lower case, but for reservations, which EKS does not know."""
    return "capacity_block" if args["purchase"] == "block" else args["purchase"]


def _repair(args: RepairArgs) -> aws.eks.NodeGroupNodeRepairConfigArgs:
    return aws.eks.NodeGroupNodeRepairConfigArgs(
        enabled=True,
        max_parallel_nodes_repaired_count=args["at_once"],
        max_unhealthy_node_threshold_count=args["stop_above"],
        node_repair_config_overrides=[
            aws.eks.NodeGroupNodeRepairConfigNodeRepairConfigOverrideArgs(
                node_monitoring_condition=rule["condition"],
                node_unhealthy_reason=rule["reason"],
                min_repair_wait_time_mins=rule["after_minutes"],
                repair_action=rule["action"],
            )
            for rule in args["rules"]
        ]
        or None,
    )


def _reservation(args: AwsGpuPoolArgs) -> aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs | None:
    reservation = args.get("reservation_id")
    if reservation is None:
        return None
    return aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs(
        # Never fall back to on-demand silently: that pays twice, for the reservation and for the node.
        capacity_reservation_preference=(
            "capacity-reservations-only" if args["purchase"] == "reserved" else None
        ),
        capacity_reservation_target=(
            aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
                capacity_reservation_id=reservation
            )
        ),
    )


def _market(args: AwsGpuPoolArgs) -> aws.ec2.LaunchTemplateInstanceMarketOptionsArgs | None:
    # Only for Capacity Blocks: for spot EKS sets the market itself and refuses a template that does.
    if args["purchase"] != "block":
        return None
    return aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type="capacity-block")
