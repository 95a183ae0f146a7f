"""The estimate adds up from dated prices, and what has no price is named instead of counted as nothing."""

import datetime
from typing import Any

import pytest

from infra import cost, spec
from infra.catalog.aws import facts
from infra.spec import StackSpec

TODAY = datetime.date(2026, 11, 21)


@pytest.fixture(scope="module")
def dev() -> StackSpec:
    return spec.load_file("dev-aws").spec


def changed(stack: StackSpec, **pool: Any) -> StackSpec:
    """The stack with its first pool changed, and no other pool."""
    return stack.model_copy(update={"pools": (stack.pools[0].model_copy(update=pool),)})


def pool_item(stack: StackSpec) -> cost.Item:
    return next(item for item in cost.estimate(stack, TODAY).items if item.name.startswith("GPU pool"))


def test_a_pool_costs_its_nodes_times_hours_times_price(dev: StackSpec) -> None:
    price = facts.price("p4d.24xlarge", "us-east-1", "on_demand")
    assert price is not None
    item = pool_item(changed(dev, min_size=1, max_size=4, expected_utilization=0.5))
    assert item.minimum == pytest.approx(730 * price.usd_per_hour_min)
    assert item.expected == pytest.approx(2 * 730 * price.usd_per_hour_expected)
    assert item.maximum == pytest.approx(4 * 730 * price.usd_per_hour_max)
    assert item.date == price.date


def test_reserved_capacity_is_paid_whether_it_runs_or_not(dev: StackSpec) -> None:
    reserved = changed(dev, capacity="reserved", reservation_id="cr-0123456789abcdef0", min_size=0)
    item = pool_item(reserved)
    assert item.minimum == item.maximum and item.minimum


def test_spot_uses_spot_prices(dev: StackSpec) -> None:
    spot, on_demand = pool_item(changed(dev, capacity="spot")), pool_item(changed(dev, capacity="on_demand"))
    assert spot.expected and on_demand.expected and spot.expected < on_demand.expected


def test_a_price_nobody_knows_is_named_and_not_zero(dev: StackSpec) -> None:
    # The catalogue has no on-demand price of p5e: it is sold in Capacity Blocks.
    estimate = cost.estimate(changed(dev, instance_type="p5e.48xlarge"), TODAY)
    assert any("p5e.48xlarge" in name for name in estimate.unknown)
    assert estimate.maximum == pytest.approx(sum(item.maximum or 0 for item in estimate.known))


def test_a_kubernetes_version_in_extended_support_costs_more(dev: StackSpec) -> None:
    old = dev.cluster.model_copy(update={"kubernetes_version": "1.33"})
    control_plane = {
        item.name: item for item in cost.estimate(dev.model_copy(update={"cluster": old}), TODAY).items
    }["EKS control plane"]
    current = {item.name: item for item in cost.estimate(dev, TODAY).items}["EKS control plane"]
    assert control_plane.expected and current.expected and control_plane.expected > 5 * current.expected


def test_the_totals_are_ordered_and_the_oldest_price_is_told(dev: StackSpec) -> None:
    estimate = cost.estimate(dev, TODAY)
    assert estimate.minimum < estimate.expected < estimate.maximum
    dates = [item.date for item in estimate.known]
    assert estimate.oldest_price == min(date for date in dates if date)
