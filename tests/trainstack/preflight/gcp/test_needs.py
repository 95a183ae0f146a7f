"""Quotas that a stack on Google Cloud needs."""

from typing import Any

import pytest

from infra.stackspec.layouts import ClusterLayout
from tests.trainstack.preflight.gcp.asking import spec
from trainstack.preflight.gcp.needs import needs


def test_a_pool_without_rdma_has_no_networks_of_its_own() -> None:
    made = spec(layout__pools__0__rdma=False)
    assert [one.name for one in needs(made).most if one.key == "networks"] == ["network"]


def test_pools_of_one_fabric_share_their_networks() -> None:
    made = spec()
    assert isinstance(made.layout, ClusterLayout)
    first, *others = made.layout.pools
    pools = [first, first.model_copy(update={"name": "flex"}), *others]
    more = made.model_copy(update={"layout": made.layout.model_copy(update={"pools": pools})})
    assert sum(one.amount for one in needs(more).most if one.key == "networks") == 1 + 8


@pytest.mark.parametrize(
    ("purchase", "keys"),
    [
        ({"kind": "on_demand"}, {"h200", "gpus_all_regions"}),
        ({"kind": "spot"}, {"preemptible_h200", "gpus_all_regions"}),
        ({"kind": "flex_start"}, {"preemptible_h200", "gpus_all_regions"}),
        ({"kind": "queued"}, {"preemptible_h200", "gpus_all_regions"}),
        ({"kind": "reserved", "id": "r"}, set()),
        ({"kind": "block", "id": "r"}, set()),
    ],
)
def test_how_a_pool_is_bought_decides_its_quota(purchase: Any, keys: set[str]) -> None:
    made = spec(layout__pools__0__machine="a3-ultragpu-8g", layout__pools__0__purchase=purchase)
    taken = {one.key: one.amount for one in needs(made).most if one.name == "h100"}
    assert {*taken} - {"networks"} == keys  # Hyperdisk is of no quota of SSDs
    assert taken["networks"] == 2  # gVNIC, and one for all RDMA NICs
    assert set(taken.values()) <= {2, 32}


def test_a_deployment_takes_what_it_validates() -> None:
    now = {(one.key, one.name): one.amount for one in needs(spec()).now}
    assert now["h100_mega", "h100"] == 2 * 8
    assert ("preemptible_l4", "l4") not in now
    without = {(one.key, one.name): one.amount for one in needs(spec(smoke__enabled=False)).now}
    assert ("h100_mega", "h100") not in without
