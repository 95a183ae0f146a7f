"""Shared parts of the launch templates of all nodes: disk, metadata service, tags."""

from collections.abc import Mapping

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


def root_volume(size_gib: int) -> aws.ec2.LaunchTemplateBlockDeviceMappingArgs:
    """An encrypted gp3 root disk that is deleted with the node.

    The key is the account's own for EBS: the disk has no lasting data, and a customer key would have to trust
    the service-linked role of EC2 Auto Scaling or no node could start.
    """
    return aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name="/dev/xvda",  # the root device of Amazon Linux
        ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            volume_size=size_gib, volume_type="gp3", encrypted="true", delete_on_termination="true"
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

    A new version of the template replaces every node: what may change belongs to `launch_tags`.
    """
    return [
        aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags={**tags, "Name": name})
        for kind in _TAGGED_RESOURCES
    ]


def launch_tags(
    component: Component, name: str, group: aws.eks.NodeGroup, tags: Mapping[str, str]
) -> list[aws.autoscaling.Tag]:
    """Tags of instances, set at their start; changing them does not affect running nodes.

    Source: EC2 Auto Scaling user guide, "Tag Auto Scaling groups and instances" (PropagateAtLaunch).
    """
    return [
        _group_tag(component, f"{name}-tag-{naming.sanitize(key)}", group, key, value, at_launch=True)
        for key, value in tags.items()
    ]


def describe_to_autoscaler(
    component: Component, name: str, group: aws.eks.NodeGroup, values: Mapping[str, str]
) -> None:
    """Describe a group's nodes to Cluster Autoscaler, such as `resources/vpc.amazonaws.com/efa`.

    Source: kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/README.md, "Auto-Discovery Setup".
    """
    for key, value in values.items():
        _group_tag(component, f"{name}-{key.rsplit('/', 1)[-1]}", group, f"{_AUTOSCALER}/{key}", value)


def _group_tag(
    component: Component,
    name: str,
    group: aws.eks.NodeGroup,
    key: str,
    value: str,
    *,
    at_launch: bool = False,
) -> aws.autoscaling.Tag:
    return aws.autoscaling.Tag(
        name,
        autoscaling_group_name=group.resources[0].autoscaling_groups[0].name,
        tag=aws.autoscaling.TagTagArgs(key=key, value=value, propagate_at_launch=at_launch),
        opts=component.child(),
    )
