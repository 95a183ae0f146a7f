"""The estimate adds up from dated prices, and what has no price is named instead of counted as nothing."""

import datetime
from typing import Any

import pytest

from infra import cost, stackspec
from infra.catalog.aws import facts
from infra.stackspec import StackSpec
from infra.stackspec.layouts import MediumLayout, OnDemand, Reserved, Spot

TODAY = datetime.date(2026, 11, 21)


@pytest.fixture(scope="module")
def dev() -> StackSpec:
    return stackspec.load_file("dev-aws").spec


def changed(stack: StackSpec, **pool: Any) -> StackSpec:
    """The stack with its first pool changed, and no other pool."""
    layout = medium(stack)
    return with_layout(stack, pools=(layout.pools[0].model_copy(update=pool),))


def medium(stack: StackSpec) -> MediumLayout:
    assert isinstance(stack.layout, MediumLayout)
    return stack.layout


def with_layout(stack: StackSpec, **changes: Any) -> StackSpec:
    return stack.model_copy(update={"layout": stack.layout.model_copy(update=changes)})


def pool_item(stack: StackSpec) -> cost.Item:
    return next(item for item in cost.estimate(stack, TODAY).items if item.name.startswith("GPU pool"))


def test_a_pool_costs_its_nodes_times_hours_times_price(dev: StackSpec) -> None:
    price = facts.price("p4d.24xlarge", "us-east-1", "on_demand")
    assert price is not None
    item = pool_item(changed(dev, min_nodes=1, max_nodes=4, expected_utilization=0.5))
    assert item.minimum == pytest.approx(730 * price.usd_per_hour_min)
    assert item.expected == pytest.approx(2 * 730 * price.usd_per_hour_expected)
    assert item.maximum == pytest.approx(4 * 730 * price.usd_per_hour_max)
    assert item.date == price.date


def test_reserved_capacity_is_paid_whether_it_runs_or_not(dev: StackSpec) -> None:
    reserved = changed(dev, purchase=Reserved(kind="reserved", id="cr-0123456789abcdef0"), min_nodes=0)
    item = pool_item(reserved)
    assert item.minimum == item.maximum and item.minimum


def test_spot_uses_spot_prices(dev: StackSpec) -> None:
    spot, on_demand = (
        pool_item(changed(dev, purchase=Spot(kind="spot"))),
        pool_item(changed(dev, purchase=OnDemand(kind="on_demand"))),
    )
    assert spot.expected and on_demand.expected and spot.expected < on_demand.expected


def test_a_price_nobody_knows_is_named_and_not_zero(dev: StackSpec) -> None:
    # The catalog has no on-demand price of p5e: it is sold in Capacity Blocks.
    estimate = cost.estimate(changed(dev, machine="p5e.48xlarge"), TODAY)
    assert any("p5e.48xlarge" in name for name in estimate.unknown)
    assert estimate.maximum == pytest.approx(sum(item.maximum or 0 for item in estimate.known))


def test_a_kubernetes_version_in_extended_support_costs_more(dev: StackSpec) -> None:
    old = with_layout(dev, kubernetes_version="1.33")
    control_plane = {item.name: item for item in cost.estimate(old, TODAY).items}["EKS control plane"]
    current = {item.name: item for item in cost.estimate(dev, TODAY).items}["EKS control plane"]
    assert control_plane.expected and current.expected and control_plane.expected > 5 * current.expected


def test_the_totals_are_ordered_and_prices_older_than_a_year_are_named(dev: StackSpec) -> None:
    estimate = cost.estimate(dev, TODAY)
    assert estimate.minimum < estimate.expected < estimate.maximum
    old = estimate.old(TODAY)
    assert [item.date for item in old] == sorted(item.date for item in old if item.date)
    year = datetime.timedelta(days=365)
    assert {item.name for item in old} == {
        item.name for item in estimate.known if item.date and TODAY - item.date > year
    }
    assert estimate.old(datetime.date(1999, 1, 1)) == ()
