"""Pools with placement by network layers."""

import copy
from typing import Any

import pytest

from infra import stackspec
from infra.catalog.aws.pools import NETWORK_LAYERS, layers
from infra.catalog.gcp import pools as gcp
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.document import read
from infra.stackspec.layouts import ClusterLayout, PoolSpec
from infra.stackspec.load import CONFIG
from stacks.clouds.aws.pools import pool_record
from stacks.flavors import topology_of


@pytest.fixture(scope="module")
def shipped() -> tuple[PoolSpec, AwsSpec]:
    """The shipped pool for training, which has a queue of its own and EFA, and grows from nothing."""
    name = "Pulumi.dev-aws.yaml"
    config = copy.deepcopy(
        {key.partition(":")[2]: one for key, one in read(CONFIG / name, name)["config"].items()}
    )
    spec = stackspec.load("dev", config, name).spec
    assert isinstance(spec.layout, ClusterLayout) and isinstance(spec.on, AwsSpec)
    return spec.layout.pools[0], spec.on


@pytest.fixture(scope="module")
def a100(shipped: tuple[PoolSpec, AwsSpec]) -> PoolSpec:
    return shipped[0]


def test_a_pool_of_fixed_size_with_a_queue_of_its_own_is(shipped: tuple[PoolSpec, AwsSpec]) -> None:
    a100, on = shipped
    fixed = a100.model_copy(update={"min_nodes": a100.max_nodes})
    record = pool_record(fixed, on, {}, region="us-east-1")
    assert record.flavor["topology"] == [*NETWORK_LAYERS, "kubernetes.io/hostname"]


@pytest.mark.parametrize(
    "change", [{}, {"min_nodes": 4, "own_queue": False}, {"min_nodes": 4, "rdma": False}]
)
def test_others_are_not_and_can_still_start_from_nothing(a100: PoolSpec, change: dict[str, Any]) -> None:
    assert topology_of(a100.model_copy(update=change), NETWORK_LAYERS) == []


def test_only_types_whose_nodes_have_the_labels() -> None:
    assert layers("p5.48xlarge") == NETWORK_LAYERS and layers("g5.48xlarge") == layers("p5x.1") == ()
    for machine in ("a3-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g"):
        assert gcp.layers(machine, "reserved") == gcp.NETWORK_LAYERS
    # GKE sets them on reserved capacity alone.
    assert gcp.layers("a3-ultragpu-8g", "spot") == gcp.layers("a3-highgpu-1g", "reserved") == ()
