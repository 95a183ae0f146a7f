"""Differences come from the state: values that the provider computes, keeps or has as a default."""

from typing import Any

import pytest

from tests.rehearsal.aws.harness import Driver

VPC: dict[str, Any] = {"cidrBlock": "10.0.0.0/16"}


def test_a_computed_value_that_is_left_out_stays(aws: Driver) -> None:
    vpc, _ = aws.network()
    block: dict[str, Any] = {"vpcId": vpc, "cidrBlock": "10.0.9.0/24"}
    aws.create("ec2/subnet:Subnet", "zoned", **block, availabilityZone="us-east-1b")
    assert aws.diff("zoned", **block).changed == ()
    assert aws.update("zoned", **block, mapPublicIpOnLaunch=True)["availabilityZone"] == "us-east-1b"
    assert aws.diff("zoned", **block, availabilityZone="us-east-1c").replaces == ("availabilityZone",)


@pytest.mark.parametrize(
    ("token", "least", "name", "value"),
    [
        ("kms/key:Key", {}, "keyUsage", "ENCRYPT_DECRYPT"),
        ("ec2/vpc:Vpc", VPC, "enableDnsSupport", True),
    ],
)
def test_the_value_that_is_there_can_be_stated_and_left_out(
    token: str, least: dict[str, Any], name: str, value: Any, aws: Driver
) -> None:
    aws.create(token, "plain", **least)
    assert aws.diff("plain", **least, **{name: value}).changed == ()
    aws.create(token, "stated", **least, **{name: value})
    assert aws.diff("stated", **least).changed == ()


def test_a_value_beside_the_default_goes_back_when_it_is_left_out(aws: Driver) -> None:
    aws.create("ec2/vpc:Vpc", "named", **VPC, enableDnsSupport=False)
    assert aws.diff("named", **VPC).changed == ("enableDnsSupport",)


def test_rules_that_are_no_longer_stated_stay(aws: Driver) -> None:
    vpc, _ = aws.network()
    rule = {"protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrBlocks": ["10.0.0.0/8"]}
    aws.create("ec2/securityGroup:SecurityGroup", "door", vpcId=vpc, ingress=[rule])
    assert aws.diff("door", vpcId=vpc).changed == ()
    assert aws.diff("door", vpcId=vpc, ingress=[]).changed == ("ingress[0]",)
    assert aws.diff("door", vpcId=vpc, ingress=[rule], description="mine").replaces == ("description",)


def test_a_document_of_systems_manager_gets_a_new_default_version_by_each_content(aws: Driver) -> None:
    content = '{"schemaVersion": "2.2", "mainSteps": []}'
    given: dict[str, Any] = {"name": "load", "documentType": "Command", "content": content}
    made = aws.create("ssm/document:Document", "load", **given)
    assert (made["latestVersion"], made["defaultVersion"], made["status"]) == ("1", "1", "Active")
    aws.create("ssm/association:Association", "now", name=made["name"], documentVersion=made["latestVersion"])
    assert aws.update("load", **given, tags={"owner": "ml"})["latestVersion"] == "1"
    changed = aws.update("load", **{**given, "content": content.replace("[]", '[{"name": "a"}]')})
    assert (changed["latestVersion"], changed["defaultVersion"]) == ("2", "2")
