"""A SageMaker domain blocks the deletion of its network; its file system may outlive it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.aws.cloud import EmulatedAws
from rehearsal.core.schema import Schemas
from rehearsal.core.state import State
from tests.rehearsal.aws.rules.world import trust
from tests.rehearsal.driver import CACHE, Driver, refused

DOMAIN, PROFILE = "sagemaker/domain:Domain", "sagemaker/userProfile:UserProfile"


class Studio(Driver):
    """A VPC with a subnet, and a domain in it."""

    def __init__(self, folder: Path, schemas: Schemas) -> None:
        state = State(folder / "state.sqlite")
        super().__init__("aws", state, EmulatedAws(state, schemas, folder), {"region": "us-east-1"})
        vpc = self.create("ec2/vpc:Vpc", "vpc", cidrBlock="10.0.0.0/16")["id"]
        subnet = self.create("ec2/subnet:Subnet", "subnet", vpcId=vpc, cidrBlock="10.0.0.0/24")["id"]
        role = self.create("iam/role:Role", "role", assumeRolePolicy=trust("sagemaker.amazonaws.com"))
        self.network = {"vpcId": vpc, "subnetIds": [subnet]}
        self.before = state.count()
        self.wanted: dict[str, Any] = {
            "domainName": "lab",
            "authMode": "IAM",
            "defaultUserSettings": {"executionRole": role["arn"]},
            **self.network,
        }

    def domain(self, retention: str | None) -> dict[str, Any]:
        policy: dict[str, Any] = {"retentionPolicy": {"homeEfsFileSystem": retention}} if retention else {}
        return self.create(DOMAIN, "domain", **self.wanted, **policy)


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    schemas = Schemas("aws", CACHE)
    studio = Studio(tmp_path, schemas)
    yield studio
    studio.state.close()
    schemas.close()


def test_a_domain_has_a_home_file_system_of_its_own(studio: Studio) -> None:
    made = studio.domain("Delete")
    assert made["id"].startswith("d-") and made["homeEfsFileSystemId"].startswith("fs-")
    assert made["arn"] == f"arn:aws:sagemaker:us-east-1:123456789012:domain/{made['id']}"
    assert made["url"] == f"https://{made['id']}.studio.us-east-1.sagemaker.aws"
    studio.create("efs/accessPoint:AccessPoint", "point", fileSystemId=made["homeEfsFileSystemId"])


def test_the_interfaces_of_a_domain_go_with_it_and_its_groups_hold_the_network(studio: Studio) -> None:
    made = studio.domain("Delete")
    for name in ("subnet", "vpc"):
        refused("DependencyViolation", studio.delete, name)
    held = studio.state.find(type="aws:ec2/networkInterface:NetworkInterface")
    assert [one.outputs["subnetId"] for one in held] == studio.network["subnetIds"]
    groups = studio.state.find(type="aws:ec2/securityGroup:SecurityGroup")
    assert f"security-group-for-inbound-nfs-{made['id']}" in {one.name for one in groups}
    studio.delete("domain")
    assert studio.state.count() == studio.before + 2
    studio.delete("subnet")
    refused("DependencyViolation", studio.delete, "vpc")


@pytest.mark.parametrize("retention", [None, "Retain"])
def test_a_retained_file_system_holds_the_network_after_the_domain(
    studio: Studio, retention: str | None
) -> None:
    made = studio.domain(retention)
    studio.delete("domain")
    assert [one.id for one in studio.state.find(type="aws:efs/fileSystem:FileSystem")] == [
        made["homeEfsFileSystemId"]
    ]
    refused(f"DependencyViolation.*home file system of {made['id']}", studio.delete, "subnet")


def test_profiles_keep_their_domain(studio: Studio) -> None:
    made = studio.domain("Delete")
    profile = studio.create(PROFILE, "profile", domainId=made["id"], userProfileName="ada")
    assert profile["id"] == profile["arn"] and profile["arn"].endswith(f"user-profile/{made['id']}/ada")
    refused("ResourceInUse: Unable to delete Domain", studio.delete, "domain")
    studio.delete("profile")
    studio.delete("domain")
    refused("ResourceNotFound", studio.create, PROFILE, "late", domainId=made["id"], userProfileName="ada")


def test_the_network_of_a_domain_is_fixed_and_its_access_is_not(studio: Studio) -> None:
    studio.domain("Delete")
    kept = {**studio.wanted, "retentionPolicy": {"homeEfsFileSystem": "Delete"}}
    assert studio.diff("domain", **{**kept, "subnetIds": ["subnet-00000000000000000"]}).replaces
    opened = {"appNetworkAccessType": "VpcOnly"}
    assert studio.diff("domain", **kept, **opened).replaces == ()
