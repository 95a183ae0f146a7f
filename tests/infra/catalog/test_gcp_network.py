"""Checks of ranges, endpoints and zones on Google Cloud: pure functions of plain values."""

import pytest

from infra.catalog.gcp import network
from tests.infra.catalog.problems import said


@pytest.mark.parametrize("cidr", ["10.0.0.0/16", "172.16.0.0/20", "192.168.0.0/18", "100.64.0.0/16"])
def test_a_range_that_holds_a_stack(cidr: str) -> None:
    assert said(network.range_problems("cidr", cidr)) == ""


@pytest.mark.parametrize(
    ("cidr", "words"),
    [
        ("10.0.0.0/15", "must be /16"),
        ("10.0.0.0/21", "to /20"),
        ("10.0.0.1/16", "Write 10.0.0.0/16."),
        ("ten", "Write a network such as 10.0.0.0/16."),
        ("192.169.0.0/16", "not a private range"),  # what a public blueprint uses
        ("172.17.0.0/16", "bridge on every node"),
    ],
)
def test_a_range_that_does_not(cidr: str, words: str) -> None:
    assert words in said(network.range_problems("cidr", cidr))


def test_a_network_is_refused_with_its_arithmetic() -> None:
    def check(cidr: str, nodes: dict[int, int]) -> str:
        return said(network.room_problems("cidr", cidr, nodes))

    assert check("10.0.0.0/20", {32: 20, 64: 6}) == ""  # 1280 + 768 of 2048
    told = check("10.0.0.0/20", {32: 21, 64: 6})
    assert "half of it, 2048 addresses, is for pods" in told
    assert "21 nodes x 64 (a /26 for 32 pods) + 6 nodes x 128 (a /25 for 64 pods) = 2112" in told
    assert "Use 10.0.0.0/19" in told
    assert check("10.0.0.0/16", {110: 128}) == ""
    assert "even a /16 is too small" in check("10.0.0.0/16", {110: 129})
    assert check("ten", {32: 1}) == ""  # the range itself is refused elsewhere


def test_the_api_server_is_reached_in_one_way() -> None:
    def check(endpoint: str, *cidrs: str) -> str:
        return said(network.api_problems("endpoint", endpoint, "access", cidrs))

    assert check("dns") == check("ip", "203.0.113.0/24") == ""
    assert "access: the API server has no address" in check("dns", "203.0.113.0/24")
    assert "access: nobody could reach the API server" in check("ip")
    assert "access[0]: wider than a /8" in check("ip", "0.0.0.0/0")


def test_zones_are_of_the_region() -> None:
    assert said(network.zone_problems("zones", "us-east1", ["us-east1-b"])) == ""
    assert "zones[1]: not a zone of us-east1" in said(
        network.zone_problems("zones", "us-east1", ["us-east1-b", "us-east1-a"])
    )
    assert "unknown region" in said(network.region_problems("region", "us-east2"))
    told = said(network.bucket_zone_problems("zone", "us-east1-d", "us-east1", "zones", ["us-east1-b"]))
    assert "no node is in this zone" in told
