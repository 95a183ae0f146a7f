"""EFS file systems, their mount targets and access points."""

from collections.abc import Iterator

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import named, text, vpc_of_group
from rehearsal.core.model import Properties
from rehearsal.core.properties import known
from rehearsal.core.rules.model import Violation

_SYSTEM, _TARGET = "aws:efs/fileSystem:FileSystem", "aws:efs/mountTarget:MountTarget"
_API = "botocore 1.44.5 efs/2015-02-01 CreateFileSystemRequest"
_TARGETS = "botocore 1.44.5 efs/2015-02-01 CreateMountTarget"


@BOOK.rule("AWS-EFS-001", _SYSTEM, source=_API)
def provisioned_throughput(inputs: Properties) -> Iterator[Violation]:
    """Throughput mode provisioned and a provisioned throughput go together."""
    mode, value = inputs.get("throughputMode", "bursting"), inputs.get("provisionedThroughputInMibps")
    if known(mode) and (mode == "provisioned") != (value is not None):
        yield Violation("provisionedThroughputInMibps", "throughputMode provisioned and this go together")


@BOOK.rule_around("AWS-EFS-005", _TARGET, source=_TARGETS)
def one_target_per_zone(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A file system has one mount target per zone."""
    subnet = site.find(inputs.get("subnetId"), "ec2/subnet:Subnet")
    if subnet is None or not known(inputs.get("fileSystemId")):
        return
    zone = subnet.outputs.get("availabilityZone")
    for other in site.others("efs/mountTarget:MountTarget"):
        same = other.outputs.get("fileSystemId") == inputs.get("fileSystemId")
        if same and other.outputs.get("availabilityZoneName") == zone:
            yield Violation(
                "subnetId",
                "mount target already exists in this AZ",
                f"{named(other)} is in {zone}; a file system has one per zone.",
                "MountTargetConflict",
            )


@BOOK.rule_around("AWS-EFS-006", _TARGET, source=_TARGETS)
def target_in_the_one_zone(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The mount target of a One Zone file system is in its zone."""
    subnet = site.find(inputs.get("subnetId"), "ec2/subnet:Subnet")
    system = site.find(inputs.get("fileSystemId"), "efs/fileSystem:FileSystem")
    zone = text(system.inputs.get("availabilityZoneName")) if system else None
    if subnet and zone and subnet.outputs.get("availabilityZone") != zone:
        yield Violation(
            "subnetId",
            f"the file system is in {zone}, the subnet in {subnet.outputs.get('availabilityZone')}",
            "Use a subnet of that zone.",
            "AvailabilityZonesMismatch",
        )


@BOOK.rule_around("AWS-EFS-007", _TARGET, source="botocore 1.44.5 efs/2015-02-01 CreateMountTargetRequest")
def groups_of_the_vpc(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A mount target's security groups are in the VPC of its subnet."""
    subnet = site.find(inputs.get("subnetId"), "ec2/subnet:Subnet")
    groups = inputs.get("securityGroups")
    for index, value in enumerate(groups if isinstance(groups, list) and subnet else []):
        vpc = vpc_of_group(site, value)
        if subnet and vpc and vpc != subnet.outputs.get("vpcId"):
            yield Violation(
                f"securityGroups[{index}]",
                f"{value} is in {vpc}, the subnet in {subnet.outputs.get('vpcId')}",
                "Use a group of that VPC.",
                "SecurityGroupNotFound",
            )
