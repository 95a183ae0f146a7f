"""EC2: instances, volumes, placement groups, reservations, and account defaults.

Shapes: internal/service/ec2/ec2_{instance,placement_group,capacity_reservation}.go,
ebs_volume.go and internal/service/autoscaling of terraform-provider-aws.
"""

from typing import Any

from policies.resource import UnknownValue
from policies.sources.live.aws.templates import METADATA
from policies.sources.live.mapping import Each, LiveKind, One, Shape, View, same, shaped
from policies.sources.live.queries import ApiQuery

_VOLUMES = "ec2.DescribeVolumes"
QUERIES = (
    ApiQuery("ec2", "DescribeInstances", "Reservations[].Instances[]"),
    ApiQuery("ec2", "DescribeVolumes", "Volumes"),
    ApiQuery("ec2", "DescribePlacementGroups", "PlacementGroups"),
    ApiQuery("ec2", "DescribeCapacityReservations", "CapacityReservations"),
    ApiQuery("ec2", "GetEbsEncryptionByDefault"),
    ApiQuery("ec2", "GetInstanceMetadataDefaults"),
    ApiQuery("autoscaling", "DescribeLaunchConfigurations", "LaunchConfigurations"),
    ApiQuery("autoscaling", "DescribeTags", "Tags"),
    ApiQuery("autoscaling", "DescribeScheduledActions", "ScheduledUpdateGroupActions"),
)  # fmt: skip
_DISK: Shape = {
    **same("Encrypted", "Iops", "KmsKeyId", "Throughput", "VolumeType"),
    "volumeSize": "Size",
}


def _disks(of_root: bool) -> Any:
    """The volumes of an instance, with details from the query of volumes (readBlockDevices)."""

    def read(view: View) -> Any:
        made = []
        for row in view.at("BlockDeviceMappings") or ():
            ebs, device = row.get("Ebs") or {}, row.get("DeviceName")
            if (device == view.at("RootDeviceName")) is not of_root:
                continue
            volume = view.look.first(_VOLUMES, "VolumeId", ebs.get("VolumeId"))
            disk = {} if volume is None else shaped(view.below(volume), _DISK)
            if volume is None:
                disk["encrypted"] = UnknownValue(
                    "encrypted", f"is not known: {ebs.get('VolumeId')} was not reported"
                )
            disk |= {"deviceName": device, "volumeId": ebs.get("VolumeId")}
            disk["deleteOnTermination"] = ebs.get("DeleteOnTermination")
            made.append(disk)
        return (made[0] if of_root else made) if made else None

    return read


_LIVING = ("pending", "running", "stopping", "stopped")


def _reservation(kind: str, block: bool) -> LiveKind:
    return LiveKind(
        kind,
        "ec2.DescribeCapacityReservations",
        "{CapacityReservationId}",
        {
            "arn": "CapacityReservationArn",
            **same("AvailabilityZone", "EndDate", "EndDateType", "InstancePlatform", "InstanceType"),
            "instanceCount": "TotalInstanceCount",
            **({} if block else {"instanceMatchCriteria": "InstanceMatchCriteria"}),
        },
        tags="Tags",
        when=lambda view: (
            (view.at("ReservationType") == "capacity-block") is block
            and view.at("State") not in ("cancelled", "expired", "failed", "payment-failed", "unsupported")
        ),
    )


KINDS = (
    LiveKind(
        "aws:ec2/instance:Instance",
        "ec2.DescribeInstances",
        "{InstanceId}",
        {
            "ami": "ImageId",
            "associatePublicIpAddress": lambda view: bool(view.at("PublicIpAddress")),
            "availabilityZone": "Placement.AvailabilityZone",
            "ebsBlockDevices": _disks(of_root=False),
            **same("InstanceType", "KeyName", "SubnetId"),
            "metadataOptions": One("MetadataOptions", METADATA),
            "placementGroup": "Placement.GroupName",
            "rootBlockDevice": _disks(of_root=True),
            "tenancy": "Placement.Tenancy",
            "vpcSecurityGroupIds": lambda view: (
                [one.get("GroupId") for one in view.at("SecurityGroups") or ()] or None
            ),
        },
        arn="arn:{partition}:ec2:{region}:{account}:instance/{InstanceId}",
        tags="Tags",
        when=lambda view: view.at("State.Name") in _LIVING,
    ),
    LiveKind(
        "aws:ebs/volume:Volume",
        _VOLUMES,
        "{VolumeId}",
        {
            **same("AvailabilityZone", "Encrypted", "Iops", "KmsKeyId", "MultiAttachEnabled", "Size"),
            **same("Throughput"),
            "snapshotId": lambda view: view.at("SnapshotId") or None,
            "type": "VolumeType",
        },
        arn="arn:{partition}:ec2:{region}:{account}:volume/{VolumeId}",
        tags="Tags",
        when=lambda view: view.at("State") not in ("deleting", "deleted"),
        keys=("kmsKeyId",),
    ),
    LiveKind(
        "aws:ec2/placementGroup:PlacementGroup",
        "ec2.DescribePlacementGroups",
        "{GroupName}",
        {
            "arn": "GroupArn",
            "name": "GroupName",
            **same("PartitionCount", "SpreadLevel", "Strategy"),
            "placementGroupId": "GroupId",
        },
        arn="arn:{partition}:ec2:{region}:{account}:placement-group/{GroupName}",
        tags="Tags",
        when=lambda view: view.at("State") not in ("deleting", "deleted"),
    ),
    _reservation("aws:ec2/capacityReservation:CapacityReservation", block=False),
    _reservation("aws:ec2/capacityBlockReservation:CapacityBlockReservation", block=True),
    LiveKind(
        "aws:ebs/encryptionByDefault:EncryptionByDefault",
        "ec2.GetEbsEncryptionByDefault",
        "{region}",
        {"enabled": "EbsEncryptionByDefault"},
    ),
    LiveKind(
        "aws:ec2/instanceMetadataDefaults:InstanceMetadataDefaults",
        "ec2.GetInstanceMetadataDefaults",
        "{region}",
        {
            "httpEndpoint": "AccountLevel.HttpEndpoint",
            "httpTokens": "AccountLevel.HttpTokens",
            "httpPutResponseHopLimit": "AccountLevel.HttpPutResponseHopLimit",
            "instanceMetadataTags": "AccountLevel.InstanceMetadataTags",
        },
    ),
    LiveKind(
        "aws:ec2/launchConfiguration:LaunchConfiguration",
        "autoscaling.DescribeLaunchConfigurations",
        "{LaunchConfigurationName}",
        {
            "arn": "LaunchConfigurationARN",
            **same("AssociatePublicIpAddress", "ImageId", "InstanceType"),
            "ebsBlockDevices": Each(
                "BlockDeviceMappings",
                {
                    **same("DeviceName", "NoDevice"),
                    "deleteOnTermination": "Ebs.DeleteOnTermination",
                    "encrypted": "Ebs.Encrypted",
                    "snapshotId": "Ebs.SnapshotId",
                    "volumeSize": "Ebs.VolumeSize",
                    "volumeType": "Ebs.VolumeType",
                },
            ),
            "metadataOptions": One(
                "MetadataOptions",
                {key: METADATA[key] for key in ("httpEndpoint", "httpTokens", "httpPutResponseHopLimit")},
            ),
            "name": "LaunchConfigurationName",
        },
    ),
    LiveKind(
        "aws:autoscaling/tag:Tag",
        "autoscaling.DescribeTags",
        "{ResourceId},{Key}",
        {
            "autoscalingGroupName": "ResourceId",
            "tag": lambda view: {
                "key": view.at("Key"),
                "value": view.at("Value"),
                "propagateAtLaunch": view.at("PropagateAtLaunch"),
            },
        },
    ),
    LiveKind(
        "aws:autoscaling/schedule:Schedule",
        "autoscaling.DescribeScheduledActions",
        "{ScheduledActionName}",
        {
            "arn": "ScheduledActionARN",
            "autoscalingGroupName": "AutoScalingGroupName",
            **same("DesiredCapacity", "MaxSize", "MinSize", "Recurrence", "ScheduledActionName"),
        },
        imported="{AutoScalingGroupName}/{ScheduledActionName}",
    ),
)
