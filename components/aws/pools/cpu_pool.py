"""A group of identical nodes without GPUs, for jobs: preparing data, evaluating, testing."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from agents.clusters.dispatch import CLUSTER_LABEL
from components.aws.pools import nodes
from components.aws.pools.live_size import LiveSizeArgs, shrinking_problems
from components.aws.pools.zone_groups import ZoneGroup, zone_groups
from components.base import Component, Options
from infra.catalog.aws import facts, pools
from infra.catalog.pools import RESERVED_LABELS, order_problems
from infra.errors import UserError
from smoke_training.fabric import Fabric

_AMI_TYPES = {"x86_64": "AL2023_x86_64_STANDARD", "arm64": "AL2023_ARM_64_STANDARD"}
_CAPACITY_TYPES = {"on_demand": "ON_DEMAND", "spot": "SPOT"}
_UPDATED_AT_ONCE_PERCENT = 33
# Tag that Cluster Autoscaler reads from a group (cloudprovider/aws/aws_manager.go, GetAsgOptions). Its
# default is half of a node: a job with less would be ended, and start again on another node.
_ONLY_EMPTY = {
    "autoscaling-options/scaledownutilizationthreshold": "0",
    "autoscaling-options/ignoredaemonsetsutilization": "true",
}


class AwsCpuPoolArgs(TypedDict):
    """Arguments of an `AwsCpuPool`."""

    pool: str
    """The pool's name: the value of the label `trainstack.dev/pool` on its nodes."""
    purpose: str
    """Purpose of the pool, such as `data`; a label on its nodes."""
    cluster_name: pulumi.Input[str]
    """The EKS cluster to join."""
    kubernetes_version: pulumi.Input[str]
    """The control plane's version; nodes follow it."""
    node_image: NotRequired[str]
    """Release of EKS's node images, such as `1.35.6-20260714`. Default: the newest when the group is made."""
    node_role_arn: pulumi.Input[str]
    """The cluster's role for nodes."""
    machine: str
    """An EC2 type of the catalog without a GPU."""
    subnets: Mapping[str, pulumi.Input[str]]
    """Private subnets by zone; each zone has a node group."""
    purchase: str
    """Kind of purchase: `on_demand` or `spot`."""
    min_nodes: int
    """Fewest nodes; 0 lets the pool cost nothing when idle."""
    max_nodes: int
    """Most nodes of the pool; each zone can have all of them."""
    live: NotRequired[Mapping[str, LiveSizeArgs]]
    """Node groups as they are now, by zone; absent before they exist."""
    disk_gib: int
    """Root disk; it holds container images."""
    disk_key_arn: pulumi.Input[str]
    """Key of root disks: one that EC2 Auto Scaling may use."""
    tags: Mapping[str, str]
    """Tags of instances, their disks and interfaces. A change replaces every node."""
    launch_tags: Mapping[str, str]
    """Tags of instances that start from now on; a change does not affect running nodes."""
    cluster: NotRequired[str]
    """Name of the cluster among several ones, the value of `trainstack.dev/cluster` on its nodes. Default: no
    such label."""


class AwsCpuPool(Component):
    """EKS managed node groups for jobs without GPUs; other pods run there only for lack of space.

    A node is removed when it has no job, and not before. Raises UserError with every impossible combination.
    """

    node_group_names: pulumi.Output[list[str]]
    """Names of the node groups in the cluster, one per zone."""
    labels: dict[str, str]
    """The labels of every node, for selectors of pods and resource flavors."""

    def __init__(self, name: str, args: AwsCpuPoolArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        pool, least, most = args["pool"], args["min_nodes"], args["max_nodes"]
        problems = [
            *pools.cpu_problems(f"{pool}.machine", args["machine"]),
            *pools.cpu_purchase_problems(f"{pool}.purchase", args["purchase"]),
            *pools.size_problems(f"{pool}.min_nodes", least, f"{pool}.max_nodes", most),
            *order_problems(f"{pool}.min_nodes", least, f"{pool}.max_nodes", most),
            *shrinking_problems(f"{pool}.max_nodes", most, args.get("live", {}).values()),
            *facts.limits["root_volume_gib"].problems(f"{pool}.disk_gib", args["disk_gib"]),
        ]
        machine = facts.cpu_type(args["machine"])
        if problems or machine is None:
            raise UserError(problems)
        self.labels = {
            **({CLUSTER_LABEL: args["cluster"]} if "cluster" in args else {}),
            f"{RESERVED_LABELS}pool": pool,
            f"{RESERVED_LABELS}purpose": args["purpose"],
            f"{RESERVED_LABELS}capacity": args["purchase"].replace("_", "-"),
            f"{RESERVED_LABELS}fabric": Fabric.TCP,
        }
        template = aws.ec2.LaunchTemplate(
            f"{name}-nodes",
            description=f"{pool}: {machine.name}, {args['purchase']}",
            update_default_version=True,
            instance_type=machine.name,
            block_device_mappings=[nodes.root_volume(args["disk_gib"], args["disk_key_arn"])],
            metadata_options=nodes.metadata_options(),
            tag_specifications=nodes.tag_specifications(name, args["tags"]),
            opts=self.child(),
        )
        self.node_groups = [
            self._node_group(zone, args, template, _AMI_TYPES[machine.architecture])
            for zone in zone_groups(name, args["subnets"], least, most, args.get("live"))
        ]
        self.node_group_names = pulumi.Output.all(*(group.node_group_name for group in self.node_groups))
        self.register_declared()

    def _node_group(
        self, zone: ZoneGroup, args: AwsCpuPoolArgs, template: aws.ec2.LaunchTemplate, image: str
    ) -> aws.eks.NodeGroup:
        group = aws.eks.NodeGroup(
            zone.name,
            cluster_name=args["cluster_name"],
            node_role_arn=args["node_role_arn"],
            subnet_ids=[zone.subnet_id],
            version=args["kubernetes_version"],
            release_version=args.get("node_image"),
            ami_type=image,
            capacity_type=_CAPACITY_TYPES[args["purchase"]],
            launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
                id=template.id, version=template.latest_version.apply(str)
            ),
            scaling_config=zone.size.config,
            update_config=aws.eks.NodeGroupUpdateConfigArgs(
                max_unavailable_percentage=_UPDATED_AT_ONCE_PERCENT
            ),
            node_repair_config=aws.eks.NodeGroupNodeRepairConfigArgs(enabled=True),
            labels=self.labels,
            # Jobs need no toleration for this. A system pod on such a node would keep the node forever.
            taints=[
                aws.eks.NodeGroupTaintArgs(
                    key=f"{RESERVED_LABELS}pool", value=args["pool"], effect="PREFER_NO_SCHEDULE"
                )
            ],
            opts=self.child(pulumi.ResourceOptions(ignore_changes=zone.size.ignored, aliases=zone.aliases)),
        )
        tags = zone.tags(self, group)
        tags.at_launch(args["launch_tags"])
        tags.for_autoscaler(_ONLY_EMPTY)
        return group
