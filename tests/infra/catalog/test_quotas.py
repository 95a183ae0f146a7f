"""Every quota that a plan exceeds is named at once."""

from typing import Any

from infra.catalog.aws.quotas import Planned, shortfalls

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
