"""A group of nodes of AWS PCS: launch template and group; and the queue of a group."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws.pools import efa, nodes
from components.aws.slurm.pcs_resource import pcs_resource, read
from components.aws.slurm.user_data import encoded
from components.base import Component, Options
from infra.catalog.aws import facts

_PURCHASES: Final = {
    "on_demand": "ONDEMAND",
    # A reservation is named in the launch template (User Guide, capacity-reservations-odcr).
    "reserved": "ONDEMAND",
    "spot": "SPOT",
    "block": "CAPACITY_BLOCK",
}


class AwsSlurmNodesArgs(TypedDict):
    """Machines, network and settings of a group."""

    cluster_id: pulumi.Input[str]
    """Id of the cluster."""
    name: str
    """Name of the group, 3 to 25 letters, digits and dashes; its nodes are `<name>-1` and so on."""
    machine: str
    """Machine type."""
    image_id: str
    """Id of the machine image."""
    purchase: Literal["on_demand", "spot", "reserved", "block"]
    """Way to buy the machines."""
    reservation_id: NotRequired[str]
    """Id of the capacity reservation or Capacity Block."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """Private subnets; one with RDMA or a reservation."""
    security_group_id: pulumi.Input[str]
    """Security group of controller and nodes."""
    profile_arn: pulumi.Input[str]
    """ARN of the instance profile."""
    rdma: bool
    """Whether nodes have every EFA interface of their type and are placed close together."""
    min_nodes: int
    """Nodes that always run."""
    max_nodes: int
    """Maximum number of nodes."""
    disk_gib: int
    """Encrypted root volume."""
    disk_key_arn: NotRequired[pulumi.Input[str]]
    """ARN of the customer's key of the root volume; without it, the account's default key for EBS."""
    user_data: pulumi.Input[str]
    """MIME text for cloud-init."""
    settings: Mapping[str, str]
    """Settings of the node line of slurm.conf."""
    tags: Mapping[str, str]
    """All tags of the group and its instances."""


class AwsSlurmNodes(Component):
    """A launch template and a compute node group, which starts instances when jobs need them."""

    group: aws.cloudcontrol.Resource
    """The compute node group."""
    group_id: pulumi.Output[str]
    """Id of the compute node group."""

    def __init__(self, name: str, args: AwsSlurmNodesArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        self._prefix = name
        template = self._template(args)
        self.group = pcs_resource(
            self,
            name,
            "ComputeNodeGroup",
            {
                "ClusterId": args["cluster_id"],
                "Name": args["name"],
                "AmiId": args["image_id"],
                # The service follows no new version by itself (User Guide, working-with_launch-templates).
                "CustomLaunchTemplate": {
                    "TemplateId": template.id,
                    "Version": template.latest_version.apply(str),
                },
                "IamInstanceProfileArn": args["profile_arn"],
                "InstanceConfigs": [{"InstanceType": args["machine"]}],
                "PurchaseOption": _PURCHASES[args["purchase"]],
                "ScalingConfiguration": {
                    "MinInstanceCount": args["min_nodes"],
                    "MaxInstanceCount": args["max_nodes"],
                },
                "SubnetIds": list(args["subnet_ids"]),
            },
            settings=args["settings"],
            tags=args["tags"],
            # A replacement has the name of the old group, which must be gone by then.
            opts=pulumi.ResourceOptions(delete_before_replace=True),
        )
        self.group_id = read(self.group, "Id")
        self.register_declared()

    def _template(self, args: AwsSlurmNodesArgs) -> aws.ec2.LaunchTemplate:
        group, interfaces = args["security_group_id"], None
        if args["rdma"]:
            interfaces = efa.network_interfaces(facts.instance_type(args["machine"]), [group])
        return aws.ec2.LaunchTemplate(
            f"{self._prefix}-nodes",
            description=f"{args['name']}: {args['machine']}, {args['purchase']}",
            update_default_version=True,
            network_interfaces=interfaces,
            vpc_security_group_ids=None if interfaces else [group],
            placement=self._placement(args),
            capacity_reservation_specification=_reservation(args),
            instance_market_options=(
                aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type="capacity-block")
                if args["purchase"] == "block"
                else None
            ),
            block_device_mappings=[
                aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
                    device_name="/dev/sda1",  # the root device of Ubuntu's images
                    ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                        volume_size=args["disk_gib"],
                        volume_type="gp3",
                        encrypted="true",
                        kms_key_id=args.get("disk_key_arn"),
                        delete_on_termination="true",
                    ),
                )
            ],
            metadata_options=nodes.metadata_options(),
            tag_specifications=nodes.tag_specifications(self._prefix, args["tags"]),
            user_data=pulumi.Output.from_input(args["user_data"]).apply(encoded),
            opts=self.child(),
        )

    def _placement(self, args: AwsSlurmNodesArgs) -> aws.ec2.LaunchTemplatePlacementArgs | None:
        """A cluster placement group for EFA; reserved capacity has its placement."""
        machine = facts.instance_types.get(args["machine"])
        prepaid = args["purchase"] in ("reserved", "block")
        if not args["rdma"] or prepaid or machine is None or not machine.supports_cluster_placement:
            return None
        group = aws.ec2.PlacementGroup(f"{self._prefix}-close", strategy="cluster", opts=self.child())
        return aws.ec2.LaunchTemplatePlacementArgs(group_name=group.name)


class AwsSlurmQueueArgs(TypedDict):
    """Groups and settings of a queue."""

    cluster_id: pulumi.Input[str]
    """Id of the cluster."""
    name: str
    """Name of the queue, and of its partition."""
    groups: Sequence[AwsSlurmNodes]
    """Its compute node groups."""
    settings: Mapping[str, str]
    """Settings of the partition line of slurm.conf. QOS in `AllowQos` must exist in the accounting data
    base."""
    tags: Mapping[str, str]
    """All tags of the queue."""


class AwsSlurmQueue(Component):
    """A queue: a partition of Slurm."""

    queue_id: pulumi.Output[str]
    """Id of the queue."""

    def __init__(self, name: str, args: AwsSlurmQueueArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        groups = [{"ComputeNodeGroupId": one.group_id} for one in args["groups"]]
        queue = pcs_resource(
            self,
            name,
            "Queue",
            {
                "ClusterId": args["cluster_id"],
                "Name": args["name"],
                "ComputeNodeGroupConfigurations": groups,
            },
            settings=args["settings"],
            tags=args["tags"],
            # A group of a queue cannot be deleted, so its replacement replaces the queue, too.
            opts=pulumi.ResourceOptions(
                delete_before_replace=True,
                replace_with=[one.group for one in args["groups"]],
            ),
        )
        self.queue_id = read(queue, "Id")
        self.register_declared()


def _reservation(
    args: AwsSlurmNodesArgs,
) -> aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs | None:
    reservation = args.get("reservation_id")
    if reservation is None:
        return None
    return aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs(
        capacity_reservation_target=(
            aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
                capacity_reservation_id=reservation
            )
        )
    )
