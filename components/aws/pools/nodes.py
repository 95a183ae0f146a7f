"""What the launch templates of all nodes share: disk, metadata service, tags."""

from collections.abc import Mapping

import pulumi_aws as aws

from components.base import Component
from infra import naming

# The resources an instance brings along that do not take over the tags of the provider.
_TAGGED_RESOURCES = ("instance", "volume", "network-interface")


def root_volume(size_gib: int) -> aws.ec2.LaunchTemplateBlockDeviceMappingArgs:
    """An encrypted gp3 root disk that dies with the node.

    The key is the account's own for EBS: nothing lasting lives here, and a customer key would have to trust
    the service-linked role of EC2 Auto Scaling or no node could start.
    """
    return aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name="/dev/xvda",  # the root device of Amazon Linux
        ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            volume_size=size_gib, volume_type="gp3", encrypted="true", delete_on_termination="true"
        ),
    )


def metadata_options() -> aws.ec2.LaunchTemplateMetadataOptionsArgs:
    """IMDSv2 only, answers not farther than the node itself.

    With one hop a pod outside the host network cannot take the node's role. Everything that talks to AWS from
    a pod has a role of its own through EKS Pod Identity, and the CSI drivers read zone and region from the
    Kubernetes API when the metadata service does not answer.
    """
    return aws.ec2.LaunchTemplateMetadataOptionsArgs(
        http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
    )


def tag_specifications(
    name: str, tags: Mapping[str, str]
) -> list[aws.ec2.LaunchTemplateTagSpecificationArgs]:
    """Tags for what EC2 Auto Scaling launches: the provider never sees these resources, cost reports do.

    A new version of the template replaces every node: what may change belongs to `launch_tags`.
    """
    return [
        aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags={**tags, "Name": name})
        for kind in _TAGGED_RESOURCES
    ]


def launch_tags(
    component: Component, name: str, group: aws.eks.NodeGroup, tags: Mapping[str, str]
) -> list[aws.autoscaling.Tag]:
    """Tags that instances take over when they start; changing them touches no node that runs.

    Source: EC2 Auto Scaling user guide, "Tag Auto Scaling groups and instances" (PropagateAtLaunch).
    """
    return [
        aws.autoscaling.Tag(
            f"{name}-tag-{naming.sanitize(key)}",
            autoscaling_group_name=group.resources[0].autoscaling_groups[0].name,
            tag=aws.autoscaling.TagTagArgs(key=key, value=value, propagate_at_launch=True),
            opts=component.child(),
        )
        for key, value in tags.items()
    ]
