"""Registered resources of an account, to which programs may refer."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UserError
from rehearsal.aws.existing import seed
from rehearsal.core import drift
from rehearsal.core.model import RefusalError
from rehearsal.core.validate import SIGNATURE
from rehearsal.projects import homes, seeding
from tests.rehearsal.aws.harness import Driver
from tests.rehearsal.driver import refused

Values = dict[str, Any]
VPC, ROLE = "vpc-0123456789abcdef0", "arn:aws:iam::123456789012:role/ours"
SUBNET: Values = {"vpcId": VPC, "cidrBlock": "10.9.1.0/24", "availabilityZone": "us-east-1a"}


def existing(aws: Driver, *resources: Values) -> list[str]:
    return seed(aws.state, resources)


def test_a_network_made_outside_of_the_rehearsal(aws: Driver) -> None:
    refused("trainstack rehearse seed", aws.create, "ec2/subnet:Subnet", "subnet", **SUBNET)
    vpc = {"type": "aws:ec2/vpc:Vpc", "id": VPC, "outputs": {"cidrBlock": "10.9.0.0/16"}}
    assert existing(aws, vpc) == [VPC]
    assert existing(aws, vpc) == []
    assert aws.create("ec2/subnet:Subnet", "subnet", **SUBNET)["id"].startswith("subnet-")
    assert aws.invoke("ec2/getVpc:getVpc", id=VPC)["cidrBlock"] == "10.9.0.0/16"
    with pytest.raises(RefusalError, match=r"InvalidSubnet\.Range"):
        aws.create("ec2/subnet:Subnet", "outside", **{**SUBNET, "cidrBlock": "10.8.0.0/24"})


def test_what_exists_is_imported(aws: Driver) -> None:
    outputs = {"cidrBlock": "10.9.0.0/16", "tags": {"team": "a"}, "tagsAll": {"team": "a"}}
    existing(aws, {"type": "aws:ec2/vpc:Vpc", "id": VPC, "outputs": outputs})
    same = {"cidrBlock": "10.9.0.0/16", "tags": {"team": "a"}}
    assert aws.imported("ec2/vpc:Vpc", "vpc", VPC, **same).changed == ()
    assert aws.imported("ec2/vpc:Vpc", "vpc", VPC, **{**same, "tags": {}}).changed == ("tags.team",)
    found = aws.imported("ec2/vpc:Vpc", "vpc", VPC, **{**same, "cidrBlock": "10.8.0.0/16"})
    assert found.replaces == ("cidrBlock",)
    group = aws.get("ec2/vpc:Vpc", VPC)
    assert group is not None
    aws.delete("vpc")
    assert aws.state.count() == 0


def test_what_has_an_urn_can_be_deleted_by_it(aws: Driver) -> None:
    urn = "urn:pulumi:large::presumed::aws:ec2/vpc:Vpc::vpc"
    existing(aws, {"type": "aws:ec2/vpc:Vpc", "id": VPC, "urn": urn})
    found = drift.find(aws.state, urn)
    assert found.id == VPC
    drift.delete(aws.cloud, found, lambda severity, text: None)
    assert aws.state.count() == 0


def test_an_id_alone_is_enough(aws: Driver) -> None:
    existing(aws, {"type": "aws:ec2/vpc:Vpc", "id": VPC})
    aws.create("ec2/subnet:Subnet", "subnet", **SUBNET)


def test_a_role_that_a_policy_names(aws: Driver) -> None:
    bucket = aws.create("s3/bucket:Bucket", "b")["id"]
    statement = {
        "Effect": "Allow",
        "Action": "s3:GetObject",
        "Principal": {"AWS": ROLE},
        "Resource": f"arn:aws:s3:::{bucket}/*",
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    with pytest.raises(RefusalError):
        aws.create("s3/bucketPolicy:BucketPolicy", "p", bucket=bucket, policy=policy)
    existing(aws, {"type": "aws:iam/role:Role", "id": "ours", "outputs": {"arn": ROLE, "name": "ours"}})
    aws.create("s3/bucketPolicy:BucketPolicy", "p", bucket=bucket, policy=policy)


def test_in_another_region_it_does_not_exist(aws: Driver) -> None:
    existing(aws, {"type": "aws:ec2/vpc:Vpc", "id": VPC, "region": "eu-west-1"})
    refused("eu-west-1", aws.create, "ec2/subnet:Subnet", "subnet", **SUBNET)


def test_the_export_of_another_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = {SIGNATURE: "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "x"}
    resources = [
        {"type": "pulumi:pulumi:Stack", "custom": False, "urn": "u"},
        {"type": "pulumi:providers:aws", "custom": True, "id": "1"},
        {"type": "aws:ec2/vpc:Vpc", "custom": True, "id": VPC, "outputs": {"arn": "a", "note": secret}},
    ]
    file = tmp_path / "stack.json"
    file.write_text(json.dumps({"version": 3, "deployment": {"resources": resources}}))
    seeded: list[object] = []

    class Home:
        def seed(self, resources: list[object]) -> list[str]:
            seeded.extend(resources)
            return [VPC]

    monkeypatch.setattr(homes, "of_checkout", Home)
    assert seeding.seed(file, None) == f"registered: {VPC}"
    assert seeded == [{"type": "aws:ec2/vpc:Vpc", "id": VPC, "outputs": {"arn": "a"}}]


@pytest.mark.parametrize(
    ("text", "code", "row"),
    [
        ("{a: 1}", "not-a-list", ""),
        ("- vpc-1", "needs-type-and-id", "[0]"),
        ("- {id: vpc-1}", "needs-type-and-id", "[0]"),
        ("- {type: gcp:compute/network:Network, id: n}", "needs-project", "[0]"),
        ("- {", "unreadable-file", ""),
    ],
)
def test_only_lists_of_resources_are_accepted(tmp_path: Path, text: str, code: str, row: str) -> None:
    file = tmp_path / "existing.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        seeding.seed(file, None)
    assert caught.value.codes == ((f"seed-{code}", f"{file.name}{row}" if row else str(file)),)
