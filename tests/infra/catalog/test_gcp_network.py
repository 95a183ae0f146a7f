"""Checks of ranges, endpoints and zones on Google Cloud: pure functions of plain values."""

import pytest

from infra.catalog.gcp import network
from tests.infra.catalog.problems import said


def test_a_network_that_is_too_small_is_refused() -> None:
    def check(cidr: str, nodes: dict[int, int]) -> str:
        return said(network.room_problems("cidr", cidr, nodes))

    assert check("10.0.0.0/20", {32: 20, 64: 6}) == ""  # 1280 + 768 of 2048
    found = check("10.0.0.0/20", {32: 21, 64: 6})
    for fact in ("network-too-small", "2048", "21 nodes x 64", "6 nodes x 128", "= 2112", "Use 10.0.0.0/19"):
        assert fact in found
    assert check("10.0.0.0/16", {110: 128}) == ""
    assert "network-too-small" in check("10.0.0.0/16", {110: 129})
    assert check("ten", {32: 1}) == ""  # the range itself is refused elsewhere


@pytest.mark.parametrize(
    ("homes", "shared_fs", "largest"),
    [(False, False, 20), (True, False, 19), (False, True, 18), (True, True, 18)],
)
def test_managed_services_have_their_blocks(homes: bool, shared_fs: bool, largest: int) -> None:
    def check(prefix: int) -> str:
        return said(network.services_problems("cidr", f"10.0.0.0/{prefix}", homes=homes, shared_fs=shared_fs))

    assert check(largest) == check(16) == ""
    if largest < network.SMALLEST_NETWORK:
        for fact in ("network-too-small-for-services", f"Use 10.0.0.0/{largest}"):
            assert fact in check(largest + 1)


def test_the_api_server_is_reached_in_one_way() -> None:
    def check(endpoint: str, *cidrs: str) -> str:
        return said(network.api_problems("endpoint", endpoint, "access", cidrs))

    assert check("dns") == check("ip", "203.0.113.0/24") == ""
    assert "api-ranges-without-address" in check("dns", "203.0.113.0/24")
    assert "api-without-ranges" in check("ip")
    assert "client-range-too-wide" in check("ip", "0.0.0.0/0")


def test_zones_are_of_the_region() -> None:
    assert said(network.zone_problems("zones", "us-east1", ["us-east1-b"])) == ""
    assert "zone-not-in-region" in said(
        network.zone_problems("zones", "us-east1", ["us-east1-b", "us-east1-a"])
    )
    assert "unknown-region" in said(network.region_problems("region", "us-east2"))
    found = said(network.bucket_zone_problems("zone", "us-east1-d", "us-east1", "zones", ["us-east1-b"]))
    assert "zone-not-of-network" in found
