"""Functions that look up resources of the account, of programs and of AWS itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.aws import functions
from rehearsal.aws.site import site_of
from rehearsal.core.emulation.functions import asking
from rehearsal.core.model import Properties, RefusalError
from rehearsal.core.state import State
from tests.rehearsal.driver import refused

SCOPE = "123456789012/us-east-1"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    state = State(tmp_path / "state.sqlite")
    yield state
    state.close()


def ask(state: State, token: str, **args: Any) -> Properties:
    kind = token.rpartition("/")[2]
    call = asking("aws", f"aws:{token}:{kind}", {"region": "us-east-1"})
    return functions.answer_to(site_of(state, call, args), args)


def keep(state: State, token: str, id: str, **outputs: Any) -> None:
    name = str(outputs.get("name", ""))
    found = {"name": name, **outputs}
    urn = f"urn:pulumi:dev::p::aws:{token}::{id}"
    state.insert(
        package="aws", type=f"aws:{token}", scope=SCOPE, id=id, urn=urn, name=name, inputs={}, outputs=found
    )


def test_every_account_has_a_default_network(state: State) -> None:
    vpc = ask(state, "ec2/getVpc", default=True)
    assert vpc["cidrBlock"] == "172.31.0.0/16" and vpc["default"] is True
    subnets = ask(state, "ec2/getSubnets", filters=[{"name": "vpc-id", "values": [vpc["id"]]}])["ids"]
    one = ask(state, "ec2/getSubnet", id=subnets[0])
    assert one["vpcId"] == vpc["id"] and one["defaultForAz"] is True and len(subnets) >= 2
    group = ask(state, "ec2/getSecurityGroup", name="default", vpcId=vpc["id"])
    assert group["id"].startswith("sg-")
    count = state.count()
    assert ask(state, "ec2/getVpc", default=True)["id"] == vpc["id"] and state.count() == count


def test_resources_are_found_by_tags_and_filters(state: State) -> None:
    keep(state, "ec2/vpc:Vpc", "vpc-1", cidrBlock="10.0.0.0/16", tagsAll={"Name": "train-1"})
    keep(state, "ec2/vpc:Vpc", "vpc-2", cidrBlock="10.1.0.0/16", tagsAll={"Name": "serve"})
    assert ask(state, "ec2/getVpc", tags={"Name": "serve"})["id"] == "vpc-2"
    assert ask(state, "ec2/getVpc", filters=[{"name": "tag:Name", "values": ["train-*"]}])["id"] == "vpc-1"
    assert ask(state, "ec2/getVpc", filters=[{"name": "cidr", "values": ["10.1.0.0/16"]}])["id"] == "vpc-2"
    assert ask(state, "ec2/getVpcs", filters=[{"name": "tag-key", "values": ["Name"]}])["ids"] == [
        "vpc-1",
        "vpc-2",
    ]
    with pytest.raises(RefusalError, match="multiple EC2 Vpcs matched"):
        ask(state, "ec2/getVpc", filters=[{"name": "tag-key", "values": ["Name"]}])
    refused("InvalidVpcID", ask, state, "ec2/getVpc", id="vpc-3")
    refused("no matching", ask, state, "ec2/getVpc", tags={"Name": "absent"})


def test_keys_and_aliases_refer_to_each_other(state: State) -> None:
    keep(state, "kms/key:Key", "k-1", arn="arn:aws:kms:us-east-1:123456789012:key/k-1")
    keep(state, "kms/alias:Alias", "alias/mine", name="alias/mine", targetKeyId="k-1")
    assert ask(state, "kms/getKey", keyId="alias/mine")["id"] == "k-1"
    assert ask(state, "kms/getAlias", name="alias/mine")["targetKeyArn"].endswith("key/k-1")
    own = ask(state, "kms/getAlias", name="alias/aws/s3")
    assert ask(state, "kms/getKey", keyId="alias/aws/s3")["id"] == own["targetKeyId"]


def test_policies_zones_parameters_and_versions(state: State) -> None:
    managed = ask(state, "iam/getPolicy", arn="arn:aws:iam::aws:policy/service-role/AmazonEC2RoleforSSM")
    assert (managed["name"], managed["path"]) == ("AmazonEC2RoleforSSM", "/service-role/")
    keep(state, "route53/zone:Zone", "Z1", name="example.com", zoneId="Z1")
    assert ask(state, "route53/getZone", name="example.com.")["zoneId"] == "Z1"
    refused("NoSuchHostedZone", ask, state, "route53/getZone", name="example.org")
    for name in ("/a/b", "/a/c/d", "/other"):
        keep(state, "ssm/parameter:Parameter", name, name=name, type="String", value=name)
    assert ask(state, "ssm/getParametersByPath", path="/a")["names"] == ["/a/b"]
    assert ask(state, "ssm/getParametersByPath", path="/a", recursive=True)["names"] == ["/a/b", "/a/c/d"]
    rows = ask(state, "eks/getClusterVersions")["clusterVersions"]
    versions = [tuple(map(int, row["clusterVersion"].split("."))) for row in rows]
    assert versions and versions == sorted(versions, reverse=True)


def test_a_newest_image_does_not_depend_on_the_order_of_arguments(state: State) -> None:
    one = ask(state, "ec2/getAmi", filters=[{"name": "name", "values": ["x"]}])
    other = ask(state, "ec2/getAmi", filters=[{"values": ["x"], "name": "name"}])
    assert one["id"] == other["id"] != ask(state, "ec2/getAmi", mostRecent=True)["id"]


def test_log_groups_are_found_by_prefix_with_their_tags_in_aws(state: State) -> None:
    tags = {"trainstack:stack": "dev"}
    keep(state, "cloudwatch/logGroup:LogGroup", "/aws/a", arn="arn:a", name="/aws/a", tags={}, tagsAll=tags)
    keep(state, "cloudwatch/logGroup:LogGroup", "/aws/b", arn="arn:b", name="/aws/b")
    assert ask(state, "cloudwatch/getLogGroups", logGroupNamePrefix="/aws/a")["logGroupNames"] == ["/aws/a"]
    assert ask(state, "cloudwatch/getLogGroups")["arns"] == ["arn:a", "arn:b"]
    assert ask(state, "cloudwatch/getLogGroup", name="/aws/a")["tags"] == tags
