"""Every quota that a plan exceeds is named at once."""

from infra.catalog.aws.quotas import NODES, Planned, shortfalls


def nodes(name: str, machine: str, count: int, market: str = "ON_DEMAND") -> Planned:
    scaling = {"desiredSize": count}
    return Planned(
        NODES, name, {"instanceTypes": [machine], "capacityType": market, "scalingConfig": scaling}
    )


def test_all_shortfalls_are_reported_at_once_the_worst_first() -> None:
    planned = [Planned("aws:ec2/vpc:Vpc", f"vpc{index}", {}) for index in range(6)]
    planned += [nodes("train", "p5.48xlarge", 2), nodes("spot", "g6.xlarge", 1)]
    found = shortfalls(planned, {"ec2_on_demand_p": 96})
    assert [(one.key, one.limit, one.wanted) for one in found] == [
        ("ec2_on_demand_p", 96, 384),
        ("vpcs", 5, 6),
    ]
    assert str(found[0]) == "Running On-Demand P instances: 384 vCPU wanted, 96 allowed (train)"


def test_an_unknown_value_never_blocks() -> None:
    assert shortfalls([nodes("train", "p5.48xlarge", 500)], {}) == []
    assert shortfalls([nodes("x", "zz9.large", 5)], {"ec2_on_demand_p": 0}) == []
    reserved = nodes("reserved", "p5.48xlarge", 5, "CAPACITY_BLOCK")
    assert shortfalls([reserved], {"ec2_on_demand_p": 0}) == []
