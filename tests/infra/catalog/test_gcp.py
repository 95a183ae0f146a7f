"""The tables of Google Cloud are read whole, and their checks agree with them."""

import pytest

from infra.catalog.gcp import facts


def test_every_table_is_read_and_refers_to_known_machines() -> None:
    assert facts.gpu_networks.keys() <= facts.machine_types.keys()
    assert facts.gpu_networks["a3-ultragpu-8g"].total == 9
    assert facts.regions["us-central1"].zones[-1] == "us-central1-f"
    assert all(name.count(".") >= 2 for name in facts.gke_versions)


@pytest.mark.parametrize(("gib", "offered"), [(1024, True), (1280, True), (1100, False), (10240, True)])
def test_a_share_has_a_size_of_its_tier(gib: int, offered: bool) -> None:
    assert (facts.filestore_tiers["ZONAL"].problem(gib) is None) is offered


@pytest.mark.parametrize(
    ("gib", "offered"), [(9000, True), (18000, True), (9001, False), (0, False), (7641000, False)]
)
def test_a_file_system_has_a_size_of_its_throughput(gib: int, offered: bool) -> None:
    problem = facts.lustre_tiers[1000].problem(gib)
    assert (problem is None) is offered
    assert offered or "9000 to 7632000 in steps of 9000" in str(problem)
