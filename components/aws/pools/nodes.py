"""Shared parts of the launch templates of all nodes: disk, metadata service, tags."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components.base import Component
from infra import naming

# The provider adds a dash and seven characters to the name of a node group, of which EKS takes 63 ("can't be
# longer than 63 characters", EKS user guide, "Create a managed node group").
_GROUP_NAME = 55
# Resources of an instance that do not inherit the tags of the provider.
_TAGGED_RESOURCES = ("instance", "volume", "network-interface")
_AUTOSCALER = "k8s.io/cluster-autoscaler/node-template"


def group_name(name: str) -> str:
    """The logical name of a node group; it ends in a digest when those of stack and pool are too long."""
    return naming.sanitize(name, max_length=_GROUP_NAME)


def root_volume(size_gib: int, key_arn: pulumi.Input[str]) -> aws.ec2.LaunchTemplateBlockDeviceMappingArgs:
    """An encrypted gp3 root disk that is deleted with the node.

    A key of the customer must let the service-linked role of EC2 Auto Scaling use it, or no node starts
    (`trainstack.preflight.aws.disk_key`).
    """
    return aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name="/dev/xvda",  # the root device of Amazon Linux
        ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            volume_size=size_gib,
            volume_type="gp3",
            encrypted="true",
            kms_key_id=key_arn,
            delete_on_termination="true",
        ),
    )


def metadata_options() -> aws.ec2.LaunchTemplateMetadataOptionsArgs:
    """IMDSv2 only, with a hop limit of one.

    With one hop a pod outside the host network cannot use the node's role. Pods that use AWS have a role of
    their own through EKS Pod Identity, and the CSI drivers read zone and region from the Kubernetes API when
    the metadata service is unreachable.
    """
    return aws.ec2.LaunchTemplateMetadataOptionsArgs(
        http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
    )


def tag_specifications(
    name: str, tags: Mapping[str, str]
) -> list[aws.ec2.LaunchTemplateTagSpecificationArgs]:
    """Tags of resources that EC2 Auto Scaling launches: the provider cannot set them, cost reports use them.

    A new version of the template replaces every node: what may change belongs to `GroupTags`.
    """
    return [
        aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags={**tags, "Name": name})
        for kind in _TAGGED_RESOURCES
    ]


@dataclass(frozen=True)
class GroupTags:
    """Tags of the Auto Scaling group of a node group."""

    component: Component
    prefix: str
    """Start of their logical names."""
    group: aws.eks.NodeGroup
    former: str | None = None
    """`prefix` of an earlier version: a tag that is made again under another name would then be deleted."""

    def at_launch(self, tags: Mapping[str, str]) -> None:
        """Tags of instances, set at their start; changing them does not affect running nodes.

        Source: EC2 Auto Scaling user guide, "Tag Auto Scaling groups and instances" (PropagateAtLaunch).
        """
        for key, value in tags.items():
            self._tag(f"tag-{naming.sanitize(key)}", key, value, at_launch=True)

    def for_autoscaler(self, values: Mapping[str, str], prefix: str = "") -> None:
        """Describe the nodes to Cluster Autoscaler, such as `resources/vpc.amazonaws.com/efa`.

        Source: kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/README.md, "Auto-Discovery Setup".
        """
        for key, value in values.items():
            self._tag(f"{prefix}{key.rsplit('/', 1)[-1]}", f"{_AUTOSCALER}/{key}", value, at_launch=False)

    def _tag(self, name: str, key: str, value: str, *, at_launch: bool) -> None:
        former = [pulumi.Alias(name=f"{self.former}-{name}")] if self.former else None
        aws.autoscaling.Tag(
            f"{self.prefix}-{name}",
            autoscaling_group_name=self.group.resources[0].autoscaling_groups[0].name,
            tag=aws.autoscaling.TagTagArgs(key=key, value=value, propagate_at_launch=at_launch),
            opts=self.component.child(pulumi.ResourceOptions(aliases=former)),
        )
