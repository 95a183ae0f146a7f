"""Documented defaults of services in rules."""

import re

import botocore.session
import pytest

SESSION = botocore.session.get_session()
DEFAULTS = [
    # MLS-IAM-05: an image that requires IMDSv2 lets tokens travel two hops.
    ("ec2", "Image", "ImdsSupport", "HttpPutResponseHopLimit is set to 2"),
    ("ec2", "InstanceMetadataOptionsRequest", "HttpTokens", "the default is required"),
    # MLS-GPU-06, MLS-NET-05, MLS-K8S-07: defaults of EKS.
    ("eks", "NodeRepairConfig", "enabled", "disabled by default"),
    ("eks", "VpcConfigRequest", "endpointPublicAccess", "default value for this parameter is true"),
    ("eks", "VpcConfigRequest", "publicAccessCidrs", "default value is 0.0.0.0/0"),
    ("eks", "CreateClusterRequest", "logging", "By default, cluster control plane logs aren't exported"),
    # Pools: a group without a type, and one that is not said to be of spot machines.
    ("eks", "CreateNodegroupRequest", "instanceTypes", "t3.medium"),
    # MLS-TAG-02, MLS-COST-09: tags of a group do not reach its machines; those of the group behind it do,
    # and not their volumes.
    ("eks", "CreateNodegroupRequest", "tags", "don't propagate to any other cluster or"),
    ("autoscaling", "CreateAutoScalingGroupType", "Tags", "propagate the tags to the Amazon EC2 instances"),
    ("autoscaling", "CreateAutoScalingGroupType", "Tags", "not propagated to Amazon EBS volumes"),
    # MLS-K8S-11: an add-on has a default version for each version of Kubernetes, which may be left out.
    ("eks", "Compatibility", "defaultVersion", "supported default version"),
]


@pytest.mark.parametrize(("service", "shape", "member", "said"), DEFAULTS)
def test_the_api_says_so(service: str, shape: str, member: str, said: str) -> None:
    found = SESSION.get_service_model(service).shape_for(shape).members[member].documentation
    assert said in re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", found))


def test_an_add_on_may_be_made_without_a_version() -> None:
    assert (
        "addonVersion"
        not in SESSION.get_service_model("eks").shape_for("CreateAddonRequest").required_members
    )
