"""What the launch templates of all nodes share: disk, metadata service, tags."""

from collections.abc import Mapping

import pulumi_aws as aws

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
    """Tags for what EC2 Auto Scaling launches: the provider never sees these resources, cost reports do."""
    return [
        aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags={**tags, "Name": name})
        for kind in _TAGGED_RESOURCES
    ]
