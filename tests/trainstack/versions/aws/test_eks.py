"""The newest versions of EKS and its node images, from responses of AWS."""

from typing import Any

import boto3
from botocore.stub import Stubber

from trainstack.versions.aws import eks as newest


def client(service: str) -> Any:
    return boto3.client(
        service, region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none"
    )


def test_kubernetes_is_the_newest_in_standard_support() -> None:
    eks = client("eks")
    with Stubber(eks) as stub:
        rows = [{"clusterVersion": version} for version in ("1.9", "1.35", "1.36")]
        stub.add_response(
            "describe_cluster_versions", {"clusterVersions": rows}, {"versionStatus": "STANDARD_SUPPORT"}
        )
        assert newest.kubernetes(eks) == "1.36"


def test_node_images_are_named_by_a_public_parameter() -> None:
    ssm = client("ssm")
    with Stubber(ssm) as stub:
        image = "amazon-linux-2023/x86_64/standard/recommended/release_version"
        name = f"/aws/service/eks/optimized-ami/1.35/{image}"
        stub.add_response("get_parameter", {"Parameter": {"Value": "1.35.6-20260714"}}, {"Name": name})
        assert newest.node_image(ssm, "1.35") == "1.35.6-20260714"


def addon(name: str, current: str | None, *versions: str) -> str | None:
    eks = client("eks")
    with Stubber(eks) as stub:
        rows = {"addons": [{"addonName": name, "addonVersions": [{"addonVersion": one} for one in versions]}]}
        stub.add_response("describe_addon_versions", rows, {"kubernetesVersion": "1.35", "addonName": name})
        return newest.addon(eks, name, "1.35", current)


def test_versions_are_compared_by_number() -> None:
    assert (
        addon("coredns", None, "v1.9.3-eksbuild.9", "v1.14.2-eksbuild.4", "v1.14.2-eksbuild.12")
        == "v1.14.2-eksbuild.12"
    )


def test_the_cni_goes_up_one_minor_version_at_a_time() -> None:
    offered = ("v1.21.1-eksbuild.8", "v1.22.4-eksbuild.1", "v1.23.0-eksbuild.1")
    assert addon("vpc-cni", "v1.21.1-eksbuild.1", *offered) == "v1.22.4-eksbuild.1"
    assert addon("vpc-cni", None, *offered) == "v1.23.0-eksbuild.1"


def test_an_addon_that_is_not_offered_has_no_newest_version() -> None:
    assert addon("coredns", "v1.14.2-eksbuild.4") is None
