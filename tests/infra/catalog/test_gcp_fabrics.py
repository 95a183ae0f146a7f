"""Checks of networks between GPUs on Google Cloud: pure functions of plain values."""

import pytest

from infra.catalog.gcp import fabrics, facts
from tests.infra.catalog.problems import said


def test_a_type_without_a_network_for_gpus_is_refused() -> None:
    assert said(fabrics.rdma_problems("rdma", facts.machine_type("a3-megagpu-8g"))) == ""
    found = said(fabrics.rdma_problems("rdma", facts.machine_type("a3-highgpu-4g")))
    assert "`compact: true`" in found and "or use a3-highgpu-8g." in found
    assert "a3-ultragpu-8g" in said(fabrics.rdma_problems("rdma", facts.machine_type("a2-highgpu-8g")))


def test_networks_are_created_by_gke_or_the_stack() -> None:
    def check(networks: fabrics.Making, machine: str, version: str = "1.35") -> str:
        return said(fabrics.making_problems("how", networks, machine, "version", version))

    assert check("managed", "a3-ultragpu-8g") == check("classic", "a3-ultragpu-8g", "1.33") == ""
    assert "managed-networks-need-version" in check("managed", "a4-highgpu-8g", "1.33")
    assert "networks-only-managed" in check("classic", "a4x-maxgpu-4g-metal")
    assert check("managed", "a3-megagpu-8g", "1.33") == ""  # always made by the stack


@pytest.mark.parametrize(
    ("machine", "count", "fix"),
    [
        ("a3-megagpu-8g", 8, ""),
        ("a3-megagpu-8g", None, "networks-missing"),
        ("a3-megagpu-8g", 9, "Attach 8"),  # a gVNIC network more takes the place of a GPU's
        ("a3-ultragpu-8g", 8, "Attach 9"),
        ("a3-ultragpu-8g", None, ""),
        ("a3-highgpu-8g", 8, "Attach 4"),
        ("a4x-maxgpu-4g-metal", 8, "networks-not-supported"),
        ("a4x-maxgpu-4g-metal", None, ""),
    ],
)
def test_a_pool_has_as_many_networks_as_nics(machine: str, count: int | None, fix: str) -> None:
    found = said(fabrics.attachment_problems("networks", machine, count))
    assert fix in found and bool(found) is bool(fix)
