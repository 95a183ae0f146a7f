"""Checks of combinations: pure functions of a path and plain values."""

from typing import Any

import pytest

from infra.catalog import clients, money
from infra.catalog import pools as any_pools
from infra.catalog.aws import access, database, facts, network, pools
from infra.catalog.gcp import facts as gcp_facts
from infra.catalog.gcp import network as gcp_network
from infra.catalog.kubernetes import kueue
from infra.naming import team_namespace
from tests.infra.catalog.problems import said


@pytest.mark.parametrize("cloud", [network, gcp_network])
@pytest.mark.parametrize("cidr", ["10.0.0.0/16", "172.16.0.0/20", "192.168.0.0/18", "100.64.0.0/16"])
def test_a_range_that_holds_a_stack(cloud: Any, cidr: str) -> None:
    assert said(cloud.range_problems("cidr", cidr)) == ""


@pytest.mark.parametrize("cloud", [network, gcp_network])
@pytest.mark.parametrize(
    ("cidr", "part"),
    [
        ("10.0.0.0/15", "network-size-not-supported"),
        ("10.0.0.0/21", "network-size-not-supported"),
        ("10.0.0.1/16", "Write 10.0.0.0/16."),
        ("ten", "such as 10.0.0.0/16"),
        ("fd00::/16", "not-an-ipv4-network"),
        ("8.8.0.0/16", "network-not-private"),
        ("127.0.0.0/16", "network-not-private"),
        ("169.254.0.0/16", "network-not-private"),
        ("192.169.0.0/16", "network-not-private"),  # what a public blueprint uses
        ("172.17.0.0/16", "network-range-in-use"),
        ("172.17.128.0/20", "network-range-in-use"),
    ],
)
def test_a_range_that_does_not(cloud: Any, cidr: str, part: str) -> None:
    assert part in said(cloud.range_problems("cidr", cidr))


@pytest.mark.parametrize("cidr", ["0.0.0.0/0", "0.0.0.0/1", "::/0", "203.0.113.7/24", "office"])
def test_the_api_is_not_open_to_the_internet(cidr: str) -> None:
    assert said(clients.api_access_problems("api", ["203.0.113.0/24", cidr])).startswith("api[1]: ")


def test_a_session_of_a_role_is_answered_with_the_role() -> None:
    session = "arn:aws-cn:sts::123456789012:assumed-role/platform/me"
    assert "arn:aws-cn:iam::123456789012:role/platform" in said(access.admin_problems("admins", [session]))


@pytest.mark.parametrize(
    "principal", ["arn:aws:iam::123456789012:role/a/b/platform", "arn:aws-us-gov:iam::123456789012:user/me"]
)
def test_roles_and_users_administer(principal: str) -> None:
    assert said(access.admin_problems("admins", [principal])) == ""


@pytest.mark.parametrize(
    "principals",
    [[], ["me"], ["arn:aws:iam::123456789012:group/ml"], ["arn:aws:iam::123456789012:role/a"] * 2],
)
def test_others_do_not(principals: list[str]) -> None:
    assert said(access.admin_problems("admins", principals))


@pytest.mark.parametrize(
    ("name", "fine"), [("dev-aws", True), ("-dev", False), ("", False), ("d" * 101, False)]
)
def test_names_of_clusters(name: str, fine: bool) -> None:
    assert (said(access.cluster_name_problems("name", name)) == "") is fine


def test_budgets() -> None:
    for usd in (0, -1, float("nan"), float("inf")):
        assert said(money.amount_problems("usd", usd))
    assert said(money.amount_problems("usd", 0.01)) == ""
    of_gcp = gcp_facts.limits
    limits = (facts.limits["budget_emails"], of_gcp["budget_channels"], of_gcp["policy_channels"])
    for limit, most in zip(limits, (10, 5, 16), strict=True):
        some = [f"{n}@example.com" for n in range(most)]
        assert said(money.email_problems("emails", some, limit)) == ""
        assert "value-not-accepted" in said(money.email_problems("emails", [*some, "a@example.com"], limit))
        assert "address-named-twice" in said(money.email_problems("emails", ["a@example.com"] * 2, limit))
        assert "alarm-without-address" in said(money.email_problems("emails", [], limit))


def test_the_database_is_not_larger_at_its_smallest() -> None:
    (problem,) = database.capacity_problems("low", 4, "high", 2)
    assert (problem.path, problem.against) == ("low", "high")


def test_efa_and_blocks_are_for_the_types_that_have_them() -> None:
    assert said(pools.efa_problems("efa", facts.instance_type("p4d.24xlarge"))) == ""
    assert said(pools.efa_problems("efa", facts.instance_type("g4dn.xlarge")))
    assert said(pools.block_problems("buy", facts.instance_type("g5.48xlarge")))
    assert said(pools.block_problems("buy", facts.instance_type("p5.48xlarge"))) == ""
    assert "p5.48xlarge" in said(any_pools.gpu_type_problems("type", "p5.49xlarge", facts.instance_type))


@pytest.mark.parametrize("reservation", [None, "", "r-1", "cr-xyz", "cr-0123456789abcdef0123"])
def test_ids_of_reservations_have_a_form(reservation: str | None) -> None:
    assert said(pools.reservation_problems("id", reservation))
    assert said(pools.reservation_problems("id", "cr-0123456789abcdef0")) == ""


def test_pools_that_need_one_zone_have_one() -> None:
    for check in (any_pools.rdma_zone_problems, any_pools.reserved_zone_problems):
        assert said(check("zones", 1)) == ""
        assert said(check("zones", 2))


@pytest.mark.parametrize(
    ("driver", "version", "fine"),
    [("dra", "1.34", False), ("dra", "1.35", True), ("dra", "1.100", True), ("device_plugin", "1.31", True)],
)
def test_dra_needs_a_recent_kubernetes(driver: str, version: str, fine: bool) -> None:
    assert (said(pools.efa_driver_problems("driver", driver, "version", version)) == "") is fine


@pytest.mark.parametrize(
    ("driver", "least", "fine"), [("dra", 0, False), ("dra", 1, True), ("device_plugin", 0, True)]
)
def test_a_pool_with_claimed_devices_has_a_node_already(driver: str, least: int, fine: bool) -> None:
    assert (said(pools.claimed_pool_problems("min_nodes", driver, least)) == "") is fine


def test_names_that_become_one_are_refused() -> None:
    found = said(kueue.name_problems("teams", ["ML Team", "ml-team", "ML Team", "!!"], team_namespace))
    assert "teams[1].name: becomes" in found and "[name-taken]" in found
    assert "teams[2].name: " in found
    assert "[name-without-letters]" in found


def test_guarantees_leave_room_for_the_validation_where_there_is_one() -> None:
    def check(promised: int, gate: int) -> str:
        return said(kueue.guarantee_problems("nodes", promised, nodes=4, gpus_per_node=8, gate_nodes=gate))

    assert check(32, 0) == check(16, 2) == ""
    assert "2 of 4" in check(17, 2)
    assert "guarantees-exceed-pool" in check(33, 0)


def test_a_type_is_wanted_where_it_is_offered() -> None:
    def check(machine: str, zones: str, region: str) -> str:
        return said(pools.offer_problems("type", machine, "zones", [region + zone for zone in zones], region))

    assert check("p4d.24xlarge", "abcd", "us-east-1") == ""
    assert "machine-in-fewer-zones" in check("p4d.24xlarge", "abcde", "us-east-1")
    assert "machine-not-in-region" in check("p5.48xlarge", "a", "af-south-1")
    assert "machine-not-in-region" in check("m7a.xlarge", "ab", "ap-east-1")
    assert check("m6i.xlarge", "abc", "eu-central-1") == ""
    assert check("x1.xlarge", "a", "us-east-1") == check("m6i.xlarge", "a", "nowhere-1") == ""


def test_types_of_system_pools_exist() -> None:
    assert said(any_pools.cpu_type_problems("type", "m6i.xlarge", facts.cpu_types)) == ""
    assert "m6i.xlarge" in said(any_pools.cpu_type_problems("type", "m6i.xlrge", facts.cpu_types))
    assert said(any_pools.cpu_type_problems("type", "g5.xlarge", facts.cpu_types))


@pytest.mark.parametrize(
    ("service", "part"),
    [
        ("ecr.drk", "ecr.dkr is meant"),
        ("com.amazonaws.us-east-1.sts", "Perhaps sts"),
        ("zzz", "unknown-endpoint-service"),
    ],
)
def test_endpoints_are_of_services_that_have_one(service: str, part: str) -> None:
    assert part in said(network.endpoint_problems("endpoints", "us-east-1", ["ecr.api", service]))
    assert said(network.endpoint_problems("endpoints", "us-east-1", ["ecr.api", "eks-auth"])) == ""


def test_endpoints_are_in_the_region_and_named_once() -> None:
    assert "endpoint-not-in-region" in said(network.endpoint_problems("endpoints", "ap-southeast-5", ["eks"]))
    assert "service-named-twice" in said(network.endpoint_problems("endpoints", "us-east-1", ["sts", "sts"]))
