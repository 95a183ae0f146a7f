"""Launch templates: the latest version of each, and the versions that nodes run.

Shapes: internal/service/ec2/ec2_launch_template.go of terraform-provider-aws.
"""

from typing import Any

from policies.resource import UnknownValue
from policies.sources.live.mapping import Each, Joined, LiveKind, One, Reader, Shape, View, same, text
from policies.sources.live.queries import ApiQuery

_TEMPLATES, _VERSIONS = "ec2.DescribeLaunchTemplates", "DescribeLaunchTemplateVersions"
_LATEST, _RUNNING = f"ec2.{_VERSIONS}", f"ec2.{_VERSIONS}/running"
QUERIES = (
    ApiQuery("ec2", "DescribeLaunchTemplates", "LaunchTemplates"),
    # The provider reads the latest version (findLaunchTemplateVersionByTwoPartKey).
    ApiQuery("ec2", _VERSIONS, "LaunchTemplateVersions", given={"Versions": ["$Latest"]}, of=_TEMPLATES,
             by={"LaunchTemplateId": "LaunchTemplateId"}),
    # EKS reports the version of the nodes of a group.
    ApiQuery("ec2", _VERSIONS, "LaunchTemplateVersions", of="eks.DescribeNodegroup", label="running",
             by={"LaunchTemplateId": "launchTemplate.id", "Versions": "[launchTemplate.version]"}),
)  # fmt: skip
# Words that a rule searches in user data; a collector keeps only which of them are present.
WORDS = ("register-with-taints",)


def _user_data(data: str) -> Reader:
    """The WORDS that it contains; otherwise unknown: it may contain secrets and is not kept."""

    def read(view: View) -> Any:
        found = view.at(f"{data}.UserData")
        if found is None:
            return None
        words = found.get("words") if isinstance(found, dict) else None
        return " ".join(words) if words else UnknownValue("userData", "is not kept in a snapshot")

    return read


def _tag_specifications(data: str) -> Reader:
    def read(view: View) -> Any:
        return [
            {
                "resourceType": one.get("ResourceType"),
                "tags": {tag["Key"]: tag["Value"] for tag in one.get("Tags") or ()},
            }
            for one in view.at(f"{data}.TagSpecifications") or ()
        ] or None

    return read


METADATA: Shape = {
    **same("HttpEndpoint", "HttpTokens", "HttpPutResponseHopLimit", "HttpProtocolIpv6"),
    **same("InstanceMetadataTags"),
}
_EBS: Shape = {
    "deleteOnTermination": text("DeleteOnTermination"),
    "encrypted": text("Encrypted"),
    **same("Iops", "KmsKeyId", "SnapshotId", "Throughput", "VolumeSize", "VolumeType"),
}
_TARGET: Shape = same("CapacityReservationId", "CapacityReservationResourceGroupArn")
_INTERFACE: Shape = {
    "associatePublicIpAddress": text("AssociatePublicIpAddress"),
    "deleteOnTermination": text("DeleteOnTermination"),
    **same("Description", "DeviceIndex", "InterfaceType", "NetworkCardIndex", "NetworkInterfaceId"),
    **same("SubnetId"),
    "securityGroups": "Groups",
}
_REQUIREMENTS: Shape = {
    "acceleratorCount": One("AcceleratorCount", same("Min", "Max")),
    **same("AcceleratorManufacturers", "AcceleratorNames", "AcceleratorTypes", "AllowedInstanceTypes"),
    **same("ExcludedInstanceTypes"),
}


def _template(data: str) -> Shape:
    return {
        "name": "LaunchTemplateName",
        "blockDeviceMappings": Each(
            f"{data}.BlockDeviceMappings",
            {"deviceName": "DeviceName", "noDevice": "NoDevice", "ebs": One("Ebs", _EBS)},
        ),
        "capacityReservationSpecification": One(
            f"{data}.CapacityReservationSpecification",
            {
                "capacityReservationPreference": "CapacityReservationPreference",
                "capacityReservationTarget": One("CapacityReservationTarget", _TARGET),
            },
        ),
        "imageId": f"{data}.ImageId",
        "instanceMarketOptions": One(f"{data}.InstanceMarketOptions", {"marketType": "MarketType"}),
        "instanceRequirements": One(f"{data}.InstanceRequirements", _REQUIREMENTS),
        "instanceType": f"{data}.InstanceType",
        "keyName": f"{data}.KeyName",
        "metadataOptions": One(f"{data}.MetadataOptions", METADATA),
        "networkInterfaces": Each(f"{data}.NetworkInterfaces", _INTERFACE),
        "placement": One(f"{data}.Placement", same("AvailabilityZone", "GroupName", "Tenancy")),
        "tagSpecifications": _tag_specifications(data),
        "userData": _user_data(data),
        "vpcSecurityGroupIds": f"{data}.SecurityGroupIds",
    }


def _ours(path: str) -> Reader:
    """Exclude the copies that EKS creates (EKS User Guide, launch-templates)."""
    return lambda view: not any(tag.get("Key", "").startswith("eks:") for tag in view.at(path) or ())


def _of(view: View) -> Any:
    return view.look.first(_TEMPLATES, "LaunchTemplateId", view.at("LaunchTemplateId"))


def _older(view: View) -> bool:
    """Return whether it is not the latest version; False if its template is unknown."""
    latest = view.at("template.LatestVersionNumber")
    return latest is not None and view.at("VersionNumber") != latest


_TYPE = "aws:ec2/launchTemplate:LaunchTemplate"
KINDS = (
    LiveKind(
        _TYPE,
        _TEMPLATES,
        "{LaunchTemplateId}",
        {
            **_template("latest.LaunchTemplateData"),
            "defaultVersion": "DefaultVersionNumber",
            "latestVersion": "LatestVersionNumber",
        },
        name="{LaunchTemplateName}",
        arn="arn:{partition}:ec2:{region}:{account}:launch-template/{LaunchTemplateId}",
        tags="Tags",
        joined={"latest": Joined(_LATEST, {"LaunchTemplateId": "LaunchTemplateId"})},
        when=_ours("Tags"),
    ),
    LiveKind(
        _TYPE,
        _RUNNING,
        "{LaunchTemplateId}:{VersionNumber}",
        _template("LaunchTemplateData"),
        name="{LaunchTemplateName}:{VersionNumber}",
        tags="template.Tags",
        joined={"template": _of},
        when=lambda view: _older(view) and _ours("template.Tags")(view),
        made=bool,
    ),
)
