"""Requests to AWS of a whole stack, with the condition keys that policies of organizations test.

Made from what the program asks of the provider (`tests/stacks/composition/composed.py`) and from actions of
each type in the catalog. What Auto Scaling, the driver of volumes and jobs ask later follows from launch
templates, the storage class and the clients' defaults.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.catalog.aws import facts
from rehearsal.core.sdk_types import resource_class
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from tests.components.graph import Graph

DEPLOYER = "arn:aws:iam::123456789012:role/platform"
JOB = "arn:aws:iam::123456789012:role/a-job"
# Global services, whose requests go to us-east-1.
_GLOBAL = ("iam", "budgets", "ce", "sts")
_ANY = "*"


@dataclass(frozen=True)
class _Stack:
    graph: Graph
    region: str
    tags: Mapping[str, str]
    """Default tags of the provider."""

    def check(self, action: str, who: str, resource: str = _ANY, **context: str) -> AccessCheck:
        service = action.partition(":")[0]
        region = "us-east-1" if service in _GLOBAL else self.region
        keys = {"aws:PrincipalArn": who, "aws:RequestedRegion": region}
        return AccessCheck(action, resource, {**keys, **context})


def requests(graph: Graph, region: str) -> list[AccessCheck]:
    """All requests of a stack's creation, life and deletion."""
    (provider,) = (one for one in graph.cloud.asked if one.type == "pulumi:providers:aws")
    tags = provider.properties["defaultTags"]
    given = json.loads(tags) if isinstance(tags, str) else tags
    stack = _Stack(graph, region, given["tags"])
    return [*_of_deployer(stack), *_of_nodes(stack), *_of_volumes(stack), *_of_jobs(stack)]


def _of_deployer(stack: _Stack) -> Iterator[AccessCheck]:
    for asked in stack.graph.cloud.asked:
        row = facts.permissions.get(asked.type)
        for action in row.actions if row else ():
            yield stack.check(action, DEPLOYER, **_keys(stack, asked.type, action, asked.properties))


def _keys(stack: _Stack, token: str, action: str, props: Mapping[str, Any]) -> dict[str, str]:
    keys: dict[str, str] = {}
    kind = resource_class(token)
    if kind is not None and hasattr(kind, "tags_all"):  # then default tags go with the creation
        keys |= _tagged({**stack.tags, **(props.get("tags") or {})})
    if token == "aws:iam/role:Role" and props.get("permissionsBoundary"):
        keys["iam:PermissionsBoundary"] = props["permissionsBoundary"]
    if action == "kms:ScheduleKeyDeletion":
        keys["kms:ScheduleKeyDeletionPendingWindowInDays"] = str(props.get("deletionWindowInDays", 30))
    if token == "aws:eks/cluster:Cluster":
        keys["eks:endpointPublicAccess"] = str(props["vpcConfig"]["endpointPublicAccess"]).lower()
    return keys


def _of_nodes(stack: _Stack) -> Iterator[AccessCheck]:
    """Launches of nodes. The service-linked role of Auto Scaling makes them, to which no SCP applies.

    They are judged all the same: an account can have the same rules as declarative or resource policies. Tags
    are those of the template and of the group, which Auto Scaling sends with the launch.
    """
    at_launch = {
        one["tag"]["key"]: one["tag"]["value"]
        for one in stack.graph.all("autoscaling/tag:Tag").values()
        if one["tag"]["propagateAtLaunch"]
    }
    for template in stack.graph.all("LaunchTemplate").values():
        metadata = template["metadataOptions"]
        options = {
            "ec2:MetadataHttpTokens": metadata["httpTokens"],
            "ec2:MetadataHttpPutResponseHopLimit": str(int(metadata["httpPutResponseHopLimit"])),
            "ec2:RoleDelivery": "2.0",
        }
        tags = {one["resourceType"]: one["tags"] for one in template["tagSpecifications"]}
        of_instance = _tagged({**tags["instance"], **at_launch})
        yield stack.check("ec2:RunInstances", DEPLOYER, _made("instance"), **options, **of_instance)
        for disk in template["blockDeviceMappings"]:
            keys = {"ec2:Encrypted": disk["ebs"]["encrypted"], **_tagged({**tags["volume"], **at_launch})}
            yield stack.check("ec2:RunInstances", DEPLOYER, _made("volume"), **keys)


def _of_volumes(stack: _Stack) -> Iterator[AccessCheck]:
    """Volumes of claims, which the driver makes with its own role."""
    settings = stack.graph.all("Addon")
    for kind in stack.graph.all("StorageClass").values():
        if kind["provisioner"] == "ebs.csi.aws.com":
            (driver,) = (one for one in settings.values() if one["addonName"] == "aws-ebs-csi-driver")
            tags = json.loads(driver["configurationValues"])["controller"]["extraVolumeTags"]
            keys = {"ec2:Encrypted": kind["parameters"]["encrypted"], **_tagged(tags)}
            yield stack.check("ec2:CreateVolume", JOB, _made("volume"), **keys)


def _of_jobs(stack: _Stack) -> Iterator[AccessCheck]:
    """Objects of jobs: clients send no header, and the bucket's default applies."""
    yield stack.check("s3:PutObject", JOB, "arn:aws:s3:::a-bucket/an-object")
    yield stack.check("s3:DeleteObject", JOB, "arn:aws:s3:::a-bucket/an-object")


def _tagged(tags: Mapping[str, str]) -> dict[str, str]:
    return {f"aws:RequestTag/{key}": value for key, value in tags.items()}


def _made(kind: str) -> str:
    return f"arn:aws:ec2:us-east-1:123456789012:{kind}/new"
