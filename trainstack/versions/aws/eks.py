"""The newest versions that EKS and its node images offer."""

from typing import Any

from trainstack.version_order import order

# Updated one minor version at a time. Source: EKS user guide, "Assign IPs to Pods with the Amazon VPC CNI".
_ONE_MINOR_AT_A_TIME = ("vpc-cni",)
_IMAGES = "/aws/service/eks/optimized-ami"
_RECOMMENDED = "amazon-linux-2023/x86_64/standard/recommended/release_version"


def kubernetes(eks: Any) -> str | None:
    """The newest version in standard support, of a boto3 client for EKS."""
    rows = eks.describe_cluster_versions(versionStatus="STANDARD_SUPPORT")["clusterVersions"]
    return max((row["clusterVersion"] for row in rows), key=order, default=None)


def node_image(ssm: Any, version: str) -> str:
    """The newest release of node images for a Kubernetes version, of a boto3 client for Systems Manager."""
    response = ssm.get_parameter(Name=f"{_IMAGES}/{version}/{_RECOMMENDED}")
    return str(response["Parameter"]["Value"])


def addon(eks: Any, name: str, version: str, current: str | None) -> str | None:
    """The newest version of an add-on for a Kubernetes version, one step away from `current`."""
    paginator = eks.get_paginator("describe_addon_versions")
    pages = paginator.paginate(kubernetesVersion=version, addonName=name)
    rows = [row for page in pages for one in page["addons"] for row in one["addonVersions"]]
    known = [row["addonVersion"] for row in rows]
    if current and name in _ONE_MINOR_AT_A_TIME:
        major, minor = order(current)[:2]
        known = [one for one in known if order(one)[:2] <= (major, minor + 1)]
    return max(known, key=order, default=None)
