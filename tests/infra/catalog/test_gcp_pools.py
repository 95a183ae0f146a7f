"""Checks of pools of nodes on Google Cloud: pure functions of plain values."""

import pytest

from infra.catalog.gcp import facts, pools
from infra.catalog.pools import cpu_type_problems, gpu_type_problems, sharing_problems
from tests.infra.catalog.problems import said


def test_a_type_is_wanted_in_zones_that_have_it() -> None:
    def check(machine: str, region: str, *letters: str) -> str:
        return said(
            pools.offer_problems("type", machine, "zones", [f"{region}-{x}" for x in letters], region)
        )

    assert check("a3-megagpu-8g", "us-central1", "a", "c") == ""
    found = check("a3-ultragpu-8g", "us-central1", "b", "c")
    assert "machine-not-in-zone" in found and "Offered in us-central1-b." in found
    assert "machine-not-in-region" in check("a2-highgpu-1g", "us-west2", "a")
    assert (
        check("g4-standard-48", "us-central1", "a", "b") == ""
    )  # in the region, no source says in which zone
    assert check("c3-standard-4", "africa-south1", "a").startswith("type: not offered")
    assert check("p5.48xlarge", "us-central1", "a") == check("a2-highgpu-1g", "nowhere1", "a") == ""


def test_types_are_known() -> None:
    assert "a3-megagpu-8g" in said(gpu_type_problems("type", "a3-megagpu-4g", facts.machine_type))
    assert said(gpu_type_problems("type", "e2-standard-4", facts.machine_type))
    assert said(cpu_type_problems("type", "e2-standard-4", facts.cpu_types)) == ""
    assert "e2-standard-4" in said(cpu_type_problems("type", "e2-standard-5", facts.cpu_types))
    assert said(pools.cpu_problems("type", "n2-standard-16")) == ""
    assert said(pools.cpu_problems("type", "n2-standard-2"))


@pytest.mark.parametrize(
    ("machine", "ways"),
    # Notes of Compute Engine's pages on the accelerator-optimized machine family, of 2026-04-13.
    [
        ("a4-highgpu-8g", {"spot", "flex_start", "queued", "reserved", "block"}),
        ("a3-ultragpu-8g", {"spot", "flex_start", "queued", "reserved", "block"}),
        ("a3-highgpu-1g", {"spot", "flex_start", "queued"}),
        ("a3-highgpu-8g", set(pools.KINDS)),
        ("a3-megagpu-8g", set(pools.KINDS)),
        ("a2-ultragpu-8g", set(pools.KINDS) - {"block"}),
        ("g2-standard-4", set(pools.KINDS) - {"block"}),
        ("a4x-highgpu-4g", {"reserved"}),
        ("g4-standard-6", set(pools.KINDS) - {"block"}),  # no source denies the others
        ("p5.48xlarge", set(pools.KINDS)),  # unknown: another check refuses the type
    ],
)
def test_types_are_sold_in_some_ways_only(machine: str, ways: set[str]) -> None:
    accepted = {kind for kind in pools.KINDS if not said(pools.purchase_problems("kind", kind, machine))}
    assert accepted == ways
    if machine == "a4-highgpu-8g":
        found = said(pools.purchase_problems("kind", "on_demand", machine))
        assert "purchase-not-offered" in found and "spot or flex_start or queued or reserved" in found


def test_a_gang_is_not_started_node_by_node() -> None:
    assert "flex-start-not-for-gangs" in said(pools.gang_problems("kind", "flex_start", "rdma", 2))
    assert said(pools.gang_problems("kind", "flex_start", "rdma", 1)) == ""
    assert said(pools.gang_problems("kind", "queued", "rdma", 2)) == ""


@pytest.mark.parametrize(("machine", "fine"), [("a4x-highgpu-4g", False), ("a4-highgpu-8g", True)])
def test_racks_whose_software_is_not_installed_are_refused(machine: str, fine: bool) -> None:
    found = said(pools.refused_problems("type", facts.machine_type(machine)))
    assert ("machine-not-supported" not in found) is fine


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


def test_queued_nodes_have_no_minimum_and_no_placement() -> None:
    assert said(pools.queued_problems("kind", "queued", "least", 0)) == ""
    assert "queued-minimum-not-zero" in said(pools.queued_problems("kind", "queued", "least", 1))
    assert said(pools.queued_problems("kind", "flex_start", "least", 1)) == ""
    assert said(pools.compact_problems("compact", "kind", "spot", "zones", 1)) == ""
    for kind in ("flex_start", "queued"):
        assert "compact-with-dynamic-nodes" in said(
            pools.compact_problems("compact", "kind", kind, "zones", 1)
        )
    assert "compact-needs-one-zone" in said(pools.compact_problems("compact", "kind", "spot", "zones", 2))
    for kind in ("reserved", "block"):
        assert "compact-with-reservation" in said(pools.compact_problems("compact", "kind", kind, "zones", 1))
    assert "compact-with-rdma" in said(pools.rdma_compact_problems("compact", "rdma", "a3-ultragpu-8g"))
    assert not said(pools.rdma_compact_problems("compact", "rdma", "a3-megagpu-8g"))


def test_gpus_are_shared_in_interactive_pools() -> None:
    def check(purpose: str, *, rdma: bool = False) -> str:
        return said(sharing_problems("sharing", "mig", purpose, "rdma", rdma=rdma))

    assert check("interactive") == ""
    assert check("training") and check("fine_tuning")
    assert "sharing-with-rdma" in check("interactive", rdma=True)


@pytest.mark.parametrize(
    ("machine", "partition", "part"),
    [
        ("a2-highgpu-1g", "1g.5gb", ""),
        ("a2-ultragpu-1g", "1g.5gb", "unknown-partition"),
        ("a2-ultragpu-1g", "1g.10gb", ""),
        ("a3-highgpu-1g", "1g.20gb", ""),
        ("g2-standard-4", "1g.5gb", "gpu-without-partitions"),
        ("a2-highgpu-1g", "half", "1g.5gb, 2g.10gb"),
        ("a3-highgpu-1g", "4g.40gb", "unknown-partition"),  # NVIDIA has it, GKE's device plugin has not
    ],
)
def test_a_gpu_is_cut_into_sizes_that_it_has(machine: str, partition: str, part: str) -> None:
    found = said(pools.partition_problems("partition", partition, facts.machine_type(machine)))
    assert part in found and bool(found) is bool(part)


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
        ("a2-highgpu-1g", 4, True),
        ("a2-highgpu-8g", 8, True),
        ("a2-highgpu-8g", 4, False),
        ("a3-highgpu-2g", 4, True),
        ("a3-highgpu-2g", 2, False),
        ("g2-standard-8", 1, True),
        ("g2-standard-8", 2, False),
        ("g2-standard-8", 0, True),
        ("g4-standard-6", 1, False),
        ("g4-standard-48", 4, True),
        ("n2-standard-16", 1, False),
        ("n2-standard-16", 0, True),
    ],
)
def test_local_disks_are_those_of_the_type(machine: str, count: int, fine: bool) -> None:
    assert (said(pools.local_ssd_problems("ssds", count, machine)) == "") is fine


def test_pools_have_sizes_that_gke_has() -> None:
    assert said(pools.size_problems("least", 0, "most", 1000)) == ""
    assert "most: " in said(pools.size_problems("least", 0, "most", 1001))
    assert "least: " in said(pools.size_problems("least", -1, "most", 1))
    assert said(pools.size_problems("least", 0, "most", 0))
