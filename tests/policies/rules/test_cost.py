"""Rules COST in the forms that the recorded examples do not have."""

import re
from typing import Any

import pytest

from policies.resource import Resource
from policies.settings import RuleSettings
from tests.policies.rules.judging import ask, made, results

POOL, TEMPLATE = "aws:eks/nodeGroup:NodeGroup", "aws:ec2/launchTemplate:LaunchTemplate"
BUDGET, MONITOR = "aws:budgets/budget:Budget", "aws:costexplorer/anomalyMonitor:AnomalyMonitor"
SUBSCRIPTION = "aws:costexplorer/anomalySubscription:AnomalySubscription"
RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"
BLOCK = "aws:ec2/capacityBlockReservation:CapacityBlockReservation"


def pool(machine: str = "p4d.24xlarge", least: int = 0, most: int = 4, **more: Any) -> Resource:
    sizes = {"minSize": least, "maxSize": most}
    return made(POOL, f"pool-{machine}", instanceTypes=[machine], scalingConfig=sizes, **more)


def budget(**alert: Any) -> Resource:
    usual = {"notificationType": "ACTUAL", "thresholdType": "PERCENTAGE", "threshold": 80}
    reported = {"subscriberEmailAddresses": ["a@example.com"]}
    return made(BUDGET, "b", limitAmount="1000", notifications=[{**usual, **reported, **alert}])


def test_a_stack_with_pools_and_no_budget() -> None:
    (found,) = ask("MLS-COST-01", pool())
    assert (found.result, found.resource) == ("fail", None)


def test_a_budget_without_receiver_or_with_forecasts_only() -> None:
    assert results("MLS-COST-01", pool(), budget(subscriberEmailAddresses=[])) == ["fail"]
    assert results("MLS-COST-01", pool(), budget(notificationType="FORECASTED")) == ["fail"]
    assert results(
        "MLS-COST-01", pool(), budget(subscriberEmailAddresses=[], subscriberSnsTopicArns=["arn"])
    ) == ["pass"]


def test_a_threshold_in_dollars_is_one_of_the_limit() -> None:
    assert results("MLS-COST-01", pool(), budget(thresholdType="ABSOLUTE_VALUE", threshold=800)) == ["pass"]
    (found,) = ask("MLS-COST-01", pool(), budget(thresholdType="ABSOLUTE_VALUE", threshold=900))
    assert re.findall(r"\d+ %", found.message) == ["90 %", "80 %"]


def test_the_sum_of_all_pools_is_reported_with_the_day_of_its_prices() -> None:
    (found,) = ask("MLS-COST-02", pool(), settings=RuleSettings(max_usd_per_hour=50))
    assert re.findall(r"[\d.-]{5,}", found.message) == ["87.83", "2026-07-20", "50.00"]
    assert "37.83 USD" in found.fix


def test_a_machine_without_a_price_is_no_free_machine() -> None:
    (found,) = ask("MLS-COST-02", pool(), pool("x1e.32xlarge"))
    assert found.result == "undetermined"
    assert "(x1e.32xlarge)" in found.message and "87.83 USD" in found.message
    (found,) = ask("MLS-COST-02", pool(most=40), pool("x1e.32xlarge"))
    assert found.result == "fail"


def test_nodes_that_always_run() -> None:
    assert results("MLS-COST-03", pool(least=1)) == ["fail"]
    assert results("MLS-COST-03", pool(least=1, tags={"environment": "production"})) == ["not-applicable"]
    assert results("MLS-COST-03", pool("m6i.xlarge", least=1)) == ["not-applicable"]
    assert results("MLS-COST-03", pool(least=1), made("aws:scheduler/schedule:Schedule", "night")) == ["pass"]


def block(**template: Any) -> list[Resource]:
    """A pool of four nodes that always run in a Capacity Block, and its launch template."""
    target = {"capacityReservationTarget": {"capacityReservationId": "cr-1"}}
    usual = {"instanceMarketOptions": {"marketType": "capacity-block"}}
    props = {**usual, "capacityReservationSpecification": target, **template}
    given: dict[str, Any] = {"capacityType": "CAPACITY_BLOCK", "launchTemplate": {"id": "lt"}}
    return [pool(least=4, tags={"environment": "dev"}, **given), made(TEMPLATE, "lt", **props)]


@pytest.mark.parametrize("rule", ["MLS-COST-03", "MLS-GPU-04"])
def test_nodes_of_a_capacity_block_are_paid_in_advance(rule: str) -> None:
    assert results(rule, *block()) == ["not-applicable"]
    # Without the block in its template, the name of a capacity type proves nothing.
    assert results(rule, *block(capacityReservationSpecification={})) == ["fail"]
    assert results(rule, *block(instanceMarketOptions={"marketType": "spot"})) == ["fail"]
    assert results(rule, *block(instanceMarketOptions=None)) == ["fail"]
    reserved: dict[str, Any] = {"launchTemplate": {"id": "lt"}, "tags": {"environment": "dev"}}
    assert results(rule, pool(least=4, **reserved), block()[1]) == ["fail"]
    assert results(rule, pool(least=4, capacityType="CAPACITY_BLOCK", tags={"environment": "dev"})) == [
        "fail"
    ]


TAG = "trainstack:stack=train-usw2"


def tagged(**tags: str) -> list[Resource]:
    """A pool whose machines have tags."""
    rows = [{"resourceType": "instance", "tags": tags}]
    return [pool(launchTemplate={"id": "lt"}), made(TEMPLATE, "lt", tagSpecifications=rows)]


def test_a_stack_is_counted_by_the_budget_of_another_that_its_settings_name() -> None:
    elsewhere = RuleSettings(budget_stack="train", budget_tag=TAG)
    rules = ("MLS-COST-01", "MLS-COST-04", "MLS-COST-09")

    def found(*all: Resource, settings: RuleSettings | None = None) -> list[str]:
        return [ask(rule, *all, settings=settings)[0].result for rule in rules]

    good = tagged(**{"trainstack:stack": "train-usw2"})
    assert found(*good) == ["fail", "fail", "not-applicable"], "a tag alone is no budget"
    assert found(*good, settings=elsewhere) == ["not-applicable", "not-applicable", "pass"]
    assert found(*tagged(other="x"), settings=elsewhere)[2] == "fail"
    assert found(*good, budget(subscriberEmailAddresses=[]), settings=elsewhere)[0] == "fail"


def test_a_budget_counts_the_stacks_that_rely_on_it() -> None:
    covers = RuleSettings(covered_tags=(TAG,))

    def found(**more: Any) -> str:
        alerts = budget().props
        return ask("MLS-COST-01", pool(), made(BUDGET, "b", **{**alerts, **more}), settings=covers)[0].result

    def of(*values: str) -> Any:
        return {"costFilters": [{"name": "TagKeyValue", "values": list(values)}]}

    own = "user:trainstack:stack$train"
    assert found(budgetType="COST", **of(own, "user:trainstack:stack$train-usw2")) == "pass"
    assert found(budgetType="COST", **of(own)) == "fail"
    assert found(budgetType="COST", **of("user:team$train-usw2")) == "fail"
    assert found(budgetType="USAGE", **of(own, "user:trainstack:stack$train-usw2")) == "fail"
    assert found(budgetType="COST") == "pass", "without a filter it counts the account"
    assert found(budgetType="COST", filterExpression={"or": []}) == "undetermined"
    assert ask("MLS-COST-01", pool(), settings=covers)[0].result == "fail"


def test_a_monitor_without_a_reader_is_none() -> None:
    monitor = made(MONITOR, "m")
    assert results("MLS-COST-04", pool(), monitor) == ["fail"]
    answered = made(SUBSCRIPTION, "s", subscribers=[{"type": "EMAIL", "address": "a@example.com"}])
    assert results("MLS-COST-04", pool(), monitor, answered) == ["pass"]


def test_volumes_of_a_template() -> None:
    disk = {"deviceName": "/dev/xvda", "ebs": {"volumeType": "gp2"}}
    (found,) = ask("MLS-COST-06", made(TEMPLATE, "lt", blockDeviceMappings=[disk]))
    assert (found.result, found.path) == ("fail", "blockDeviceMappings[0].ebs.volumeType")
    assert results("MLS-COST-06", made(TEMPLATE, "lt")) == ["not-applicable"]


def test_reserved_capacity_that_no_pool_uses() -> None:
    ends = {"endDateType": "limited", "instanceType": "p4d.24xlarge"}
    unused = made(RESERVATION, "cr", **ends)
    assert results("MLS-COST-08", unused) == ["fail"]
    assert results("MLS-COST-08", unused, pool()) == ["pass"]
    assert results("MLS-COST-08", unused, pool("p5.48xlarge")) == ["fail"]
    targeted = made(RESERVATION, "cr", instanceMatchCriteria="targeted", **ends)
    assert results("MLS-COST-08", targeted, pool()) == ["fail"]


def test_a_block_has_to_be_named_by_a_pool() -> None:
    block = made(BLOCK, "cr", instanceType="p4d.24xlarge")
    assert results("MLS-COST-08", block, pool()) == ["fail"]
    target = {"capacityReservationTarget": {"capacityReservationId": "cr"}}
    into = made(TEMPLATE, "lt", capacityReservationSpecification=target)
    assert results("MLS-COST-08", block, pool(launchTemplate={"id": "lt"}), into) == ["pass"]


def test_cloud_nat_is_never_on_the_way_to_buckets_of_google() -> None:
    subnet = made("gcp:compute/subnetwork:Subnetwork", privateIpGoogleAccess=False)
    nat = made(
        "gcp:compute/routerNat:RouterNat", sourceSubnetworkIpRangesToNat="ALL_SUBNETWORKS_ALL_IP_RANGES"
    )
    assert results("MLS-COST-05", subnet, nat) == ["not-applicable"]


GKE, NODES = "gcp:container/cluster:Cluster", "gcp:container/nodePool:NodePool"


def gke(machine: str = "a2-highgpu-8g", most: int = 4, **node: Any) -> Resource:
    config = {"machineType": machine, **node}
    sizes = {"totalMaxNodeCount": most}
    return made(
        NODES, f"pool-{machine}", location="us-central1", autoscaling=sizes, nodeConfig=config, region=""
    )


def test_pools_of_gke_cost_what_their_nodes_are_bought_for() -> None:
    reported = {
        name: ask("MLS-COST-02", one, settings=RuleSettings(max_usd_per_hour=1))[0].message.split()[0]
        for name, one in {"on demand": gke(), "spot": gke(spot=True), "flex": gke(flexStart=True)}.items()
    }
    assert float(reported["spot"]) < float(reported["flex"]) < float(reported["on demand"])
    assert 25 < float(reported["on demand"]) / 4 < 35, "dollars for a node with eight A100"


def test_pools_of_both_clouds_are_one_bill() -> None:
    (found,) = ask("MLS-COST-02", pool(), gke(), settings=RuleSettings(max_usd_per_hour=50))
    assert float(found.message.split()[0]) > 87.83 + 4 * 25


def test_nodes_of_gke_without_a_price_are_not_free() -> None:
    attached = [{"type": "nvidia-tesla-t4", "count": 4}]
    for one in (gke("n1-standard-8", guestAccelerators=attached), gke("x4-megamem-960-metal")):
        (found,) = ask("MLS-COST-02", one)
        assert (found.result, "pool-" in found.message) == ("undetermined", True)
    assert results("MLS-COST-02", gke("x4-megamem-960-metal", most=0)) == ["pass"]


def test_what_gke_starts_by_itself_has_no_largest_size() -> None:
    for more in ({"enableAutopilot": True}, {"clusterAutoscaling": {"enabled": True}}):
        cluster = made(GKE, "train", location="us-central1", removeDefaultNodePool=True, **more)
        (found,) = ask("MLS-COST-02", cluster)
        assert (found.result, "nodes of train" in found.message) == ("undetermined", True)
