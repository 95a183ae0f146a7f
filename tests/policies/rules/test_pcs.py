"""Rules that judge groups of AWS PCS by their launch templates."""

import json
from typing import Any

import pytest

from policies.resource import Resource, UnknownValue
from tests.policies.rules.judging import made, results

TEMPLATE, RESOURCE = "aws:ec2/launchTemplate:LaunchTemplate", "aws:cloudcontrol/resource:Resource"


def system(machine: str, kind: str = "ComputeNodeGroup", **template: Any) -> list[Resource]:
    """A group of nodes of a machine type, and its launch template."""
    state = {"CustomLaunchTemplate": {"TemplateId": "lt"}, "InstanceConfigs": [{"InstanceType": machine}]}
    group = made(RESOURCE, "group", typeName=f"AWS::PCS::{kind}", desiredState=json.dumps(state))
    return [group, made(TEMPLATE, "lt", **template)]


@pytest.mark.parametrize(
    ("machine", "expected"),
    [("p4d.24xlarge", "pass"), ("p3.2xlarge", "fail"), ("m6i.xlarge", "not-applicable")],
)
def test_machines_of_groups_are_those_of_their_template(machine: str, expected: str) -> None:
    assert results("MLS-GPU-01", *system(machine)) == [expected]


@pytest.mark.parametrize("rule", ["MLS-COST-01", "MLS-COST-04"])
def test_a_system_with_accelerators_is_for_training(rule: str) -> None:
    assert results(rule, *system("p4d.24xlarge")) == ["fail"]
    assert results(rule, *system("m6i.xlarge")) == ["not-applicable"]
    assert results(rule, *system("p4d.24xlarge", kind="Queue")) == ["not-applicable"]


def test_efa_interfaces_are_those_of_the_machine_of_a_group() -> None:
    one = [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "efa"}]
    rest = [{"networkCardIndex": card, "deviceIndex": 1, "interfaceType": "efa-only"} for card in (1, 2, 3)]
    assert results("MLS-NET-02", *system("p4d.24xlarge", networkInterfaces=one + rest)) == ["pass"]
    assert results("MLS-NET-02", *system("p4d.24xlarge", networkInterfaces=one)) == ["fail"]


def test_a_group_that_is_not_known_yet_is_no_pass() -> None:
    state: Any = UnknownValue("desiredState", "is not known before the deployment")
    planned = made(RESOURCE, "group", typeName="AWS::PCS::ComputeNodeGroup", desiredState=state)
    assert results("MLS-GPU-01", planned, made(TEMPLATE, "lt")) == ["undetermined"]


@pytest.mark.parametrize("state", [None, "", "[]", "no json"])
def test_a_group_without_a_state_starts_nothing(state: Any) -> None:
    group = made(RESOURCE, "group", typeName="AWS::PCS::ComputeNodeGroup", desiredState=state)
    assert results("MLS-GPU-01", group, made(TEMPLATE, "lt")) == ["not-applicable"]
