"""Checks of combinations on Google Cloud: pure functions of a path and plain values."""

import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.catalog.gcp import access, database, fabrics, facts, filestore, lustre, money, network, pools
from infra.catalog.gcp.gke import maintenance_problems
from infra.errors import Problem


def said(problems: Iterable[Problem]) -> str:
    """All problems as text; "" when there is none. Every problem says what to do."""
    found = list(problems)
    assert all(problem.rule and problem.fix.endswith(".") for problem in found)
    return "\n".join(map(str, found))


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


def test_a_type_is_wanted_in_zones_that_have_it() -> None:
    def check(machine: str, region: str, *letters: str) -> str:
        return said(
            pools.offer_problems("type", machine, "zones", [f"{region}-{x}" for x in letters], region)
        )

    assert check("a3-megagpu-8g", "us-central1", "a", "c") == ""
    told = check("a3-ultragpu-8g", "us-central1", "b", "c")
    assert "zones[1]: has no a3-ultragpu-8g" in told and "Offered in us-central1-b." in told
    assert "type: not offered in us-west2" in check("a2-highgpu-1g", "us-west2", "a")
    assert (
        check("g4-standard-48", "us-central1", "a", "b") == ""
    )  # in the region, no source says in which zone
    assert check("c3-standard-4", "africa-south1", "a").startswith("type: not offered")
    assert check("p5.48xlarge", "us-central1", "a") == check("a2-highgpu-1g", "nowhere1", "a") == ""


def test_types_are_known() -> None:
    assert "a3-megagpu-8g" in said(pools.type_problems("type", "a3-megagpu-4g"))
    assert said(pools.type_problems("type", "e2-standard-4"))
    assert said(pools.system_type_problems("type", "e2-standard-4")) == ""
    assert "e2-standard-4" in said(pools.system_type_problems("type", "e2-standard-5"))
    assert said(pools.cpu_problems("type", "n2-standard-16")) == ""
    assert said(pools.cpu_problems("type", "n2-standard-2"))


def test_a_type_without_a_network_for_gpus_is_told_what_has_one() -> None:
    assert said(fabrics.rdma_problems("rdma", facts.machine_type("a3-megagpu-8g"))) == ""
    told = said(fabrics.rdma_problems("rdma", facts.machine_type("a3-highgpu-4g")))
    assert "`compact: true`" in told and "or use a3-highgpu-8g." in told
    assert "a3-ultragpu-8g" in said(fabrics.rdma_problems("rdma", facts.machine_type("a2-highgpu-8g")))


def test_networks_are_made_by_who_can() -> None:
    def check(networks: fabrics.Making, machine: str, version: str = "1.35") -> str:
        return said(fabrics.making_problems("how", networks, machine, "version", version))

    assert check("managed", "a3-ultragpu-8g") == check("classic", "a3-ultragpu-8g", "1.33") == ""
    assert "from Kubernetes 1.34 on, not 1.33" in check("managed", "a4-highgpu-8g", "1.33")
    assert "only GKE makes the networks" in check("classic", "a4x-maxgpu-4g-metal")
    assert check("managed", "a3-megagpu-8g", "1.33") == ""  # always made by the stack


@pytest.mark.parametrize(
    ("machine", "count", "words"),
    [
        ("a3-megagpu-8g", 8, ""),
        ("a3-megagpu-8g", None, "GKE makes no networks for a3-megagpu-8g"),
        ("a3-megagpu-8g", 9, "takes 8 networks"),  # a gVNIC network more takes the place of a GPU's
        ("a3-ultragpu-8g", 8, "takes 9 networks"),
        ("a3-ultragpu-8g", None, ""),
        ("a3-highgpu-8g", 8, "takes 4 networks"),
        ("a4x-maxgpu-4g-metal", 8, "the stack makes no networks for a4x-maxgpu-4g-metal"),
        ("a4x-maxgpu-4g-metal", None, ""),
    ],
)
def test_a_pool_has_as_many_networks_as_nics(machine: str, count: int | None, words: str) -> None:
    told = said(fabrics.attachment_problems("networks", machine, count))
    assert words in told and bool(told) is bool(words)


def test_a_policy_places_one_rack() -> None:
    rack, single = facts.machine_type("a4x-highgpu-4g"), facts.machine_type("a4-highgpu-8g")
    assert (
        said(fabrics.rack_problems("most", 18, rack)) == said(fabrics.rack_problems("most", 99, single)) == ""
    )
    assert "at most 18 machines" in said(fabrics.rack_problems("most", 19, rack))


@pytest.mark.parametrize(
    ("kind", "name", "fine"),
    [
        ("reserved", "projects/research-1/reservations/h100", True),
        ("reserved", "projects/research-1/reservations/h100/reservationBlocks/block-1", True),
        ("block", "projects/research-1/reservations/h100", True),
        ("block", "projects/research-1/reservations/h100/reservationBlocks/block-1", True),
        ("on_demand", "projects/research-1/reservations/h100", False),
        ("spot", None, True),
        ("reserved", "h100/reservationBlocks/block-1", False),  # GKE answers 404
        ("reserved", "h100", False),
        ("reserved", "projects/research-1/reservations/h100/", False),
        ("reserved", "projects/research-1/reservations/H100", False),
        ("reserved", "cr-0123456789abcdef0", False),
        ("reserved", None, False),
    ],
)
def test_names_of_reservations_have_a_form(kind: str, name: str | None, fine: bool) -> None:
    assert (said(pools.reservation_problems("id", kind, name)) == "") is fine


def test_what_is_waited_for_is_neither_there_before_nor_placed_closely() -> None:
    assert said(pools.queued_problems("kind", "queued", "least", 0)) == ""
    assert "least: queued nodes come for a job" in said(pools.queued_problems("kind", "queued", "least", 1))
    assert said(pools.queued_problems("kind", "flex_start", "least", 1)) == ""
    assert said(pools.compact_problems("compact", "kind", "spot", "zones", 1)) == ""
    for kind in ("flex_start", "queued"):
        assert "takes no compact placement" in said(
            pools.compact_problems("compact", "kind", kind, "zones", 1)
        )
    assert "in one zone" in said(pools.compact_problems("compact", "kind", "spot", "zones", 2))
    for kind in ("reserved", "block"):
        assert "where it was made" in said(pools.compact_problems("compact", "kind", kind, "zones", 1))
    assert "placed by these" in said(pools.rdma_compact_problems("compact", "rdma"))


def test_gpus_are_shared_where_people_try_things() -> None:
    def check(purpose: str, *, rdma: bool = False) -> str:
        return said(pools.sharing_problems("sharing", "mig", purpose, "rdma", rdma=rdma))

    assert check("interactive") == ""
    assert check("training") and check("fine_tuning")
    assert "parts of GPUs use no RDMA" in check("interactive", rdma=True)


@pytest.mark.parametrize(
    ("machine", "partition", "words"),
    [
        ("a2-highgpu-1g", "1g.5gb", ""),
        ("a2-ultragpu-1g", "1g.5gb", "no partition of A100 80GB"),
        ("a2-ultragpu-1g", "1g.10gb", ""),
        ("a3-highgpu-1g", "1g.20gb", ""),
        ("g2-standard-4", "1g.5gb", "L4 is not cut"),
        ("a2-highgpu-1g", "half", "It has 1g.5gb, 2g.10gb"),
        ("a3-highgpu-1g", "4g.40gb", "no partition of H100"),  # NVIDIA has it, GKE's device plugin has not
    ],
)
def test_a_gpu_is_cut_into_sizes_that_it_has(machine: str, partition: str, words: str) -> None:
    told = said(pools.partition_problems("partition", partition, facts.machine_type(machine)))
    assert words in told and bool(told) is bool(words)


@pytest.mark.parametrize(
    ("machine", "partition", "gpus"),
    # Instances per GPU in NVIDIA's MIG user guide.
    [
        ("a2-highgpu-1g", "1g.5gb", 7),
        ("a2-highgpu-2g", "3g.20gb", 4),
        ("a2-ultragpu-1g", "2g.20gb", 3),
        ("a3-highgpu-8g", "1g.20gb", 32),
        ("a3-ultragpu-8g", "3g.71gb", 16),
        ("a3-ultragpu-8g", "1g.18gb", 56),
        ("a3-ultragpu-8g", "7g.141gb", 8),
        ("a4-highgpu-8g", "1g.45gb", 32),
    ],
)
def test_a_node_offers_its_partitions(machine: str, partition: str, gpus: int) -> None:
    assert pools.gpus_of_node(facts.machine_type(machine), partition=partition) == gpus
    assert pools.gpus_of_node(facts.machine_type("g2-standard-24"), clients=3) == 6


@pytest.mark.parametrize(
    ("machine", "count", "fine"),
    [
        ("a3-megagpu-8g", 16, True),
        ("a3-megagpu-8g", 8, False),
        ("a2-ultragpu-2g", 2, True),
        ("a2-ultragpu-2g", 0, False),
        ("a2-highgpu-8g", 8, True),
        ("g2-standard-8", 1, True),
        ("a4x-highgpu-4g", 4, False),  # some number of its own, which no source gives
        ("n2-standard-16", 1, False),
        ("n2-standard-16", 0, True),
    ],
)
def test_local_disks_are_those_of_the_type(machine: str, count: int, fine: bool) -> None:
    assert (said(pools.local_ssd_problems("ssds", count, machine)) == "") is fine


def test_pools_have_sizes_that_gke_has() -> None:
    assert said(pools.size_problems("least", 0, "most", 1000)) == ""
    assert "most: the largest size" in said(pools.size_problems("least", 0, "most", 1001))
    assert "least: the smallest size" in said(pools.size_problems("least", -1, "most", 1))
    assert said(pools.size_problems("least", 0, "most", 0))


def test_a_version_is_of_the_channel() -> None:
    def check(version: str, channel: str = "regular") -> str:
        return said(facts.gke.version_problems("version", version, "channel", channel))

    assert check("1.35") == check("1.31", "extended") == ""
    assert "Use one of 1.30, 1.31" in check("1.99")
    assert "the channel stable offers 1.33 to 1.35" in check("1.36", "stable")
    assert check("1.31")


def test_upgrades_have_time() -> None:
    def check(hours: int, *days: str) -> str:
        return said(maintenance_problems("days", days, "hours", hours))

    assert check(6, "SA", "SU") == check(12, "SA") == ""
    assert "8 windows of 5 hours in 32 days are 40 hours, and GKE needs 48" in check(5, "SA", "SU")
    assert "Set 6 hours" in check(5, "SA", "SU") and "Set 48 hours" in check(24)
    assert "twice" in check(12, "SA", "SA")


@pytest.mark.parametrize(
    ("capacity", "throughput", "words"),
    [
        (9000, 1000, ""),
        (72000, 125, ""),
        (4800, 125, "Set 72000."),
        (40000, 250, "Set 36000 or 72000."),
        (1539000, 1000, "Set 1530000 or 1584000."),
        (20000000, 1000, "Set 10008000."),
        (9000, 300, "must be one of 125, 250, 500, 1000 MB/s per TiB (got 300). Set 250."),
    ],
)
def test_a_file_system_has_a_size_that_is_sold(capacity: int, throughput: int, words: str) -> None:
    told = said(lustre.size_problems("size", capacity, "speed", throughput))
    assert words in told and bool(told) is bool(words)


@given(capacity=st.integers(-5000, 50_000_000), throughput=st.sampled_from([125, 250, 500, 1000]))
def test_every_size_offered_as_a_fix_is_accepted(capacity: int, throughput: int) -> None:
    for problem in lustre.size_problems("size", capacity, "speed", throughput):
        sizes = [int(size) for size in re.findall(r"\d+", problem.fix)]
        assert sizes
        assert all(said(lustre.size_problems("size", size, "speed", throughput)) == "" for size in sizes)


def test_clients_of_lustre_use_tcp() -> None:
    assert said(lustre.rdma_problems("rdma", rdma=True))
    assert said(lustre.rdma_problems("rdma", rdma=False)) == ""


def test_shares_have_sizes_of_their_tier() -> None:
    assert said(filestore.size_problems("size", 1024, "tier", "ZONAL")) == ""
    assert "Set 9984 or 10240." in said(filestore.size_problems("size", 10000, "tier", "ZONAL"))
    assert "ZONAL" in said(filestore.size_problems("size", 1024, "tier", "ZONE"))


@pytest.mark.parametrize(
    ("tier", "words"),
    [
        ("db-custom-2-7680", ""),
        ("db-custom-1-3840", ""),
        ("db-custom-3-7680", "an even number"),
        ("db-custom-98-122880", "up to 96"),
        ("db-custom-2-2048", "Write db-custom-2-3840."),
        ("db-custom-2-7700", "Write db-custom-2-7936."),
        ("db-custom-2-65536", "Write db-custom-2-13312."),
        ("db-f1-micro", "must have the form"),
    ],
)
def test_a_database_has_a_size_that_is_sold(tier: str, words: str) -> None:
    told = said(database.tier_problems("tier", tier))
    assert words in told and bool(told) is bool(words)


@given(vcpu=st.integers(1, 48).map(lambda n: 2 * n), mib=st.integers(0, 1_000_000))
def test_every_tier_offered_as_a_fix_is_accepted(vcpu: int, mib: int) -> None:
    for problem in database.tier_problems("tier", f"db-custom-{vcpu}-{mib}"):
        fix = problem.fix.removeprefix("Write ").removesuffix(".")
        assert said(database.tier_problems("tier", fix)) == ""


def test_money() -> None:
    for usd in (0, -1, float("nan"), float("inf")):
        assert said(money.amount_problems("usd", usd))
    assert said(money.amount_problems("usd", 0.01)) == said(money.anomaly_problems("usd", None)) == ""
    assert said(money.anomaly_problems("usd", 500.0))
    assert "mailing list" in said(
        money.email_problems("emails", [f"{n}@example.com" for n in range(6)], "budget")
    )
    assert "twice" in said(money.email_problems("emails", ["a@example.com"] * 2, "budget"))
    assert said(money.email_problems("emails", [], "budget"))


def test_people_administer_or_work_in_a_team() -> None:
    admins = ["user:Ada@example.com", "serviceAccount:d@p-1.iam.gserviceaccount.com"]
    assert said(access.admin_problems("admins", admins)) == ""
    assert "twice" in said(access.admin_problems("admins", ["user:a@example.com", "user:A@example.com"]))
    assert "admins[0]" in said(access.admin_problems("admins", ["ada@example.com"]))
    assert said(access.admin_problems("admins", []))

    def members(*names: str) -> str:
        found = access.apart_problems("members", names, "admins", admins)
        return said([*access.member_problems("members", names), *found])

    assert members("user:bob@example.com", "group:team@example.com") == ""
    assert "administers the cluster" in members("user:ada@example.com")  # the same account in another case
    assert "members[0]" in members("serviceAccount:x@p-1.iam.gserviceaccount.com")
    assert "members[0]" in members("arn:aws:iam::123456789012:user/ada")
    assert "in lower case" in members("user:Bob@example.com")  # RBAC would not know the address
