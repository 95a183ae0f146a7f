"""Every quota that a plan exceeds is named at once."""

import pytest

from infra.catalog.aws import facts
from infra.catalog.aws.quotas import NODES, PlannedResource, request, shortfalls, vcpu_key


def nodes(name: str, machine: str, count: int, market: str = "ON_DEMAND") -> PlannedResource:
    scaling = {"desiredSize": count}
    return PlannedResource(
        NODES, name, {"instanceTypes": [machine], "capacityType": market, "scalingConfig": scaling}
    )


def test_all_shortfalls_are_reported_at_once_the_worst_first() -> None:
    planned = [PlannedResource("aws:ec2/vpc:Vpc", f"vpc{index}", {}) for index in range(6)]
    planned += [nodes("train", "p5.48xlarge", 2), nodes("spot", "g6.xlarge", 1)]
    found = shortfalls(planned, {"ec2_on_demand_p": 96})
    assert [(one.key, one.limit, one.wanted) for one in found] == [
        ("ec2_on_demand_p", 96, 384),
        ("vpcs", 5, 6),
    ]
    assert "On-Demand P instances" in str(found[0]) and "(train)" in str(found[0])


def test_an_unknown_value_never_blocks() -> None:
    assert shortfalls([nodes("train", "p5.48xlarge", 500)], {}) == []
    assert shortfalls([nodes("x", "zz9.large", 5)], {"ec2_on_demand_p": 0}) == []
    reserved = nodes("reserved", "p5.48xlarge", 5, "CAPACITY_BLOCK")
    assert shortfalls([reserved], {"ec2_on_demand_p": 0}) == []


@pytest.mark.parametrize(
    ("machine", "market", "key"),
    [
        ("p4d.24xlarge", "spot", "ec2_spot_p"),
        ("p5en.48xlarge", "spot", "ec2_spot_p5"),
        ("p6-b200.48xlarge", "spot", "ec2_spot_p6"),
        ("p5.48xlarge", "on_demand", "ec2_on_demand_p"),
        ("g6.2xlarge", "spot", "ec2_spot_g"),
        ("m7g.xlarge", "on_demand", "ec2_on_demand_standard"),
        ("m7g.xlarge", "spot", "ec2_spot_standard"),
        ("p5.48xlarge", "capacity_block", None),
    ],
)
def test_each_family_and_market_has_its_quota(machine: str, market: str, key: str | None) -> None:
    assert vcpu_key(machine, market) == key


@pytest.mark.parametrize("market", ["on_demand", "spot"])
def test_every_machine_of_the_catalog_has_a_quota_that_exists(market: str) -> None:
    keys = {vcpu_key(name, market) for name in (*facts.instance_types, *facts.cpu_types)}
    assert keys <= set(facts.quotas)


def test_a_quota_without_a_code_is_requested_by_its_name() -> None:
    asked = request("ml.g6.xlarge for training job usage", 2, "us-west-2")
    assert "--service-code sagemaker" in asked and "--desired-value 2" in asked
    assert "list-aws-default-service-quotas" in asked
    assert "QuotaName=='ml.g6.xlarge for training job usage'" in asked


def test_a_request_is_a_command_to_paste() -> None:
    assert request("ec2_on_demand_p", 191.5, "eu-west-1") == (
        "aws service-quotas request-service-quota-increase --service-code ec2 "
        "--quota-code L-417A185B --desired-value 192 --region eu-west-1"
    )
