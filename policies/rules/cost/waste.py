"""Avoidable cost: NAT traffic, old volume types, log retention."""

from collections.abc import Iterator

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.pools import TEMPLATE
from policies.stack import Stack

_NAT, _AWS_SUBNET = "aws:ec2/natGateway:NatGateway", "aws:ec2/subnet:Subnet"
_VPC, _ENDPOINT = "aws:ec2/vpc:Vpc", "aws:ec2/vpcEndpoint:VpcEndpoint"


@CATALOG.rule_around(
    "MLS-COST-05",
    "medium",
    # Not for Google Cloud: Cloud NAT enables Private Google Access for its ranges, and carries no traffic
    # to buckets (Cloud NAT product interactions).
    (_NAT,),
    "A NAT gateway bills every gigabyte of training data; a gateway endpoint is free.",
    "Add a gateway endpoint for S3 to the VPC.",
)
def buckets_are_not_behind_nat(gateway: Resource, stack: Stack) -> Iterator[Violation]:
    """Traffic to buckets does not pass a NAT gateway."""
    subnet = stack.target(gateway, "subnetId", _AWS_SUBNET)
    vpc = stack.target(subnet, "vpcId", _VPC) if subnet else None
    if vpc is None:
        raise UndeterminedError("its VPC is not in this stack")
    if not any(_is_way_to_buckets(one) for one in stack.users(vpc, _ENDPOINT, "vpcId")):
        yield Violation(f"{vpc.name} has no gateway endpoint for S3")


def _is_way_to_buckets(endpoint: Resource) -> bool:
    is_gateway = endpoint.props.get("vpcEndpointType", "Gateway") == "Gateway"
    return is_gateway and str(endpoint.props.get("serviceName")).endswith(".s3")


_VOLUME = "aws:ebs/volume:Volume"
_DEAR = ("gp2", "standard")


@CATALOG.rule(
    "MLS-COST-06",
    "low",
    (_VOLUME, TEMPLATE),
    "gp2 costs a quarter more per gigabyte than gp3 and is slower below a terabyte.",
    "Set the volume type to gp3.",
    ("pulumi/examples aws-ts-finops",),
)
def volumes_are_gp3(resource: Resource) -> Iterator[Violation]:
    """Volumes are gp3, or of a type for more throughput."""
    if resource.kind == _VOLUME:
        # EC2 API Reference, CreateVolume: gp2 by default.
        kind = resource.props.get("type") or "gp2"
        if kind in _DEAR:
            yield Violation(f"its type is {kind}", "type")
        return
    disks = [(path, disk["ebs"]) for path, disk in resource.items("blockDeviceMappings") if disk.get("ebs")]
    if not disks:
        raise NotApplicableError("it names no volume")
    for path, disk in disks:
        kind = disk.get("volumeType") or "gp2"
        if kind in _DEAR:
            yield Violation(f"its type is {kind}", f"{path}.ebs.volumeType")


_LOGS, _BUCKET = "aws:cloudwatch/logGroup:LogGroup", "gcp:logging/projectBucketConfig:ProjectBucketConfig"
_GOOGLE_DAYS = 30
"""Default retention of Cloud Logging (documentation of ProjectBucketConfig)."""


@CATALOG.rule_around(
    "MLS-COST-07",
    "medium",
    (_LOGS, _BUCKET),
    "Without a retention, logs are kept and billed for ever; with a short one, incidents are lost.",
    "Set retentionInDays, or retentionDays.",
    ("CKV_AWS_66",),
)
def logs_expire(group: Resource, stack: Stack) -> Iterator[Violation]:
    """Logs are kept long enough to investigate an incident, and not for ever."""
    path, unset = ("retentionInDays", 0) if group.kind == _LOGS else ("retentionDays", _GOOGLE_DAYS)
    days = group.props.get(path) or unset
    least, most = stack.settings.least_log_retention_days, stack.settings.log_retention_days
    if days == 0:
        yield Violation("lines are never deleted", path, f"Set it to {most} days or fewer.")
    elif not least <= days <= most:
        yield Violation(f"{days} days is not between {least} and {most}", path)
