"""Quotas and scarce machines: every shortfall at once before, the service's words during."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.catalog.aws.quotas import Planned, shortfalls
from rehearsal.aws.limits import Account
from rehearsal.core.model import RefusalError

NODES = "aws:eks/nodeGroup:NodeGroup"


def group(machine: str, count: int, market: str = "ON_DEMAND", *more: str) -> dict[str, Any]:
    return {
        "instanceTypes": [machine, *more],
        "capacityType": market,
        "scalingConfig": {"desiredSize": count, "maxSize": 9, "minSize": 0},
    }


def test_all_shortfalls_are_told_at_once_the_worst_first() -> None:
    planned = [Planned("aws:ec2/vpc:Vpc", f"vpc{index}", {}) for index in range(6)]
    planned += [
        Planned(NODES, "train", group("p5.48xlarge", 2)),
        Planned(NODES, "spot", group("g6.xlarge", 1)),
    ]
    found = shortfalls(planned, {"ec2_on_demand_p": 96})
    assert [(one.key, one.limit, one.wanted) for one in found] == [
        ("ec2_on_demand_p", 96, 384),
        ("vpcs", 5, 6),
    ]
    assert str(found[0]) == "Running On-Demand P instances: 384 vCPU wanted, 96 allowed (train)"


def test_what_no_source_knows_never_blocks() -> None:
    assert shortfalls([Planned(NODES, "train", group("p5.48xlarge", 500))], {}) == []
    assert shortfalls([Planned(NODES, "x", group("zz9.large", 5))], {"ec2_on_demand_p": 0}) == []
    block = group("p5.48xlarge", 5, "CAPACITY_BLOCK")
    assert shortfalls([Planned(NODES, "reserved", block)], {"ec2_on_demand_p": 0}) == []


def refuse(folder: Path, scenario: dict[str, Any], inputs: dict[str, Any], *zones: str) -> str:
    (folder / "faults.json").write_text(json.dumps(scenario))
    try:
        Account(folder / "faults.json").refuse(NODES, "train", inputs, list(zones), [])
    except RefusalError as refusal:
        return str(refusal)
    return ""


def test_the_service_refuses_vcpus_beyond_the_quota(tmp_path: Path) -> None:
    said = refuse(tmp_path, {"quotas": {"ec2_on_demand_p": 100}}, group("p5.48xlarge", 1), "us-east-1a")
    assert said.startswith("VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU")
    assert not refuse(tmp_path, {"quotas": {"ec2_on_demand_p": 192}}, group("p5.48xlarge", 1), "us-east-1a")


@pytest.mark.parametrize(
    ("inputs", "zones", "refused"),
    [
        (group("p5.48xlarge", 2, "SPOT"), ["us-east-1a"], True),
        (group("p5.48xlarge", 2), ["us-east-1a"], False),  # on demand instead
        (group("p5.48xlarge", 2, "SPOT"), ["us-east-1a", "us-east-1b"], False),  # another zone has them
        (group("p5.48xlarge", 2, "SPOT", "p4d.24xlarge"), ["us-east-1a"], False),  # another type
    ],
)
def test_scarce_machines_fail_and_fall_back(
    tmp_path: Path, inputs: dict[str, Any], zones: list[str], refused: bool
) -> None:
    row = {"instance_type": "p5.48xlarge", "zone": "us-east-1a", "market": "spot", "instances": 1}
    said = refuse(tmp_path, {"capacity": [row]}, inputs, *zones)
    assert ("InsufficientInstanceCapacity" in said and "Could not launch Spot" in said) is refused
