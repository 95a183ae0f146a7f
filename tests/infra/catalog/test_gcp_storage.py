"""Checks of file systems and databases on Google Cloud: pure functions of plain values."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.catalog.gcp import database, filestore, lustre
from tests.infra.catalog.problems import said


@pytest.mark.parametrize(
    ("capacity", "throughput", "part"),
    [
        (9000, 1000, ""),
        (72000, 125, ""),
        (4800, 125, "Set 72000."),
        (40000, 250, "36000 or 72000"),
        (1539000, 1000, "1530000 or 1584000"),
        (20000000, 1000, "Set 10008000."),
        (9000, 300, "Set 250."),
    ],
)
def test_a_file_system_has_a_size_that_is_sold(capacity: int, throughput: int, part: str) -> None:
    found = said(lustre.size_problems("size", capacity, "speed", throughput))
    assert part in found and bool(found) is bool(part)


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
    assert "9984 or 10240" in said(filestore.size_problems("size", 10000, "tier", "ZONAL"))
    assert "ZONAL" in said(filestore.size_problems("size", 1024, "tier", "ZONE"))


@pytest.mark.parametrize(
    ("tier", "part"),
    [
        ("db-custom-2-7680", ""),
        ("db-custom-1-3840", ""),
        ("db-custom-3-7680", "database-processors-not-offered"),
        ("db-custom-98-122880", "database-processors-not-offered"),
        ("db-custom-2-2048", "Write db-custom-2-3840."),
        ("db-custom-2-7700", "Write db-custom-2-7936."),
        ("db-custom-2-65536", "Write db-custom-2-13312."),
        ("db-f1-micro", "invalid-database-tier"),
    ],
)
def test_a_database_has_a_size_that_is_sold(tier: str, part: str) -> None:
    found = said(database.tier_problems("tier", tier))
    assert part in found and bool(found) is bool(part)


@given(vcpu=st.integers(1, 48).map(lambda n: 2 * n), mib=st.integers(0, 1_000_000))
def test_every_tier_offered_as_a_fix_is_accepted(vcpu: int, mib: int) -> None:
    for problem in database.tier_problems("tier", f"db-custom-{vcpu}-{mib}"):
        fix = problem.fix.removeprefix("Write ").removesuffix(".")
        assert said(database.tier_problems("tier", fix)) == ""
