"""The spec and the component ask the catalog the same about a pool: what one accepts, the other does too."""

import copy
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.gcp.cluster.gke import GcpCluster
from components.gcp.network.interfaces import interfaces
from components.gcp.pools.gpu_pool_args import pool_problems
from infra import stackspec
from infra.catalog.gcp import facts
from infra.errors import Problem, UserError
from infra.stackspec import layers
from infra.stackspec.document import read
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, PoolSpec
from infra.stackspec.load import CONFIG
from infra.stackspec.supported import SUPPORTED
from stacks.clouds.gcp.pools import gpu_pool_args, is_classic

_RESERVATION = "projects/research-1/reservations/gpus"
_MACHINES = [
    *("a3-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g", "a4x-highgpu-4g", "a3-highgpu-2g"),
    *("a2-highgpu-1g", "a2-ultragpu-2g", "g2-standard-48"),
]
_PURCHASES: list[dict[str, str]] = [
    *({"kind": kind} for kind in ("on_demand", "spot", "flex_start", "queued")),
    *({"kind": kind, "id": name} for kind in ("reserved", "block") for name in (_RESERVATION, "gpus")),
    {"kind": "block", "id": f"{_RESERVATION}/reservationBlocks/one"},
]
_SHARINGS: list[dict[str, Any] | None] = [
    *(None, None, {"kind": "time_sharing", "clients": 4}),
    *({"kind": "mig", "partition": partition} for partition in ("1g.5gb", "1g.10gb", "4g.40gb")),
]
_CPUS = {
    "name": "cpus",
    "machine": "n2-standard-16",
    "purpose": "data",
    "purchase": {"kind": "on_demand"},
    "zones": ["us-central1-a"],
    "rdma": False,
    "max_nodes": 1,
}


@st.composite
def pools(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A pool of the layout, and what only GKE asks about it."""
    machine = draw(st.sampled_from(_MACHINES))
    zones = facts.offering_zones(machine, "us-central1") or ()  # which those are, the component cannot know
    pool = {
        "name": "gpus",
        "machine": machine,
        "purpose": draw(st.sampled_from(["training", "interactive"])),
        "purchase": draw(st.sampled_from(_PURCHASES)),
        "zones": list(zones[: draw(st.integers(1, 2))]),
        "rdma": draw(st.booleans()),
        "min_nodes": draw(st.sampled_from([0, 0, 1])),
        "max_nodes": draw(st.sampled_from([2, 4, 19])),
    }
    on: dict[str, Any] = {"compact": draw(st.sampled_from([False, False, True]))}
    on["sharing"] = draw(st.sampled_from(_SHARINGS))
    pool["own_queue"] = on["sharing"] is not None
    on["local_ssds"] = draw(st.sampled_from([None, None, 2, 16]))
    return pool, on


def stack(pool: dict[str, Any], on: dict[str, Any]) -> dict[str, Any]:
    """The shipped environment with this pool and one without GPUs, which is not validated."""
    config = read(CONFIG / "Pulumi.dev-gcp.yaml", "f")["config"]
    values = copy.deepcopy({name.removeprefix("trainstack:"): value for name, value in config.items()})
    spec = values["spec"]
    spec["layout"] |= {"zones": list(facts.region("us-central1").zones), "pools": [pool, _CPUS]}
    spec["on"] |= {"pools": {"gpus": on}, "rapid_checkpoints": None}
    spec["data"] = {**spec.get("data", {}), "shared_fs": None}
    spec["smoke"] |= {"enabled": False, "schedule": None, "pools": None}
    spec["teams"] = [{"name": "Research", "gpus": {}, "members": ["user:ada@example.com"]}]
    return {**values, "region": "us-central1"}


def of_component(pool: PoolSpec, on: GcpSpec) -> list[Problem]:
    """What the component says about the pool, with the networks that a stack would give it."""
    cluster = SimpleNamespace(cluster_name="c", location="us-central1", node_service_account="n", key_id="k")
    given = (
        [{"network": nic.network, "subnetwork": nic.network} for nic in interfaces(pool.machine)]
        if is_classic(pool, on)
        else None
    )
    args = gpu_pool_args(pool, on, cluster=cast(GcpCluster, cluster), attachments=cast(Any, given), labels={})
    return pool_problems(args, facts.machine_type(pool.machine))


def test_whatever_pool_the_spec_accepts_the_component_accepts_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layers, "SUPPORTED", SUPPORTED | {("medium", "gcp")})
    # The parts of a spec that are the same for every pool.
    known = stackspec.load("dev-gcp", stack(*_sound()), "f").spec
    assert isinstance(known.on, GcpSpec) and isinstance(known.layout, ClusterLayout)
    base = known.on
    outcomes: Counter[str] = Counter()

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(drawn=pools())
    def check(drawn: tuple[dict[str, Any], dict[str, Any]]) -> None:
        try:
            stackspec.load("dev-gcp", stack(*copy.deepcopy(drawn)), "f")
            refused: Sequence[Problem] = ()
        except UserError as error:
            refused = error.problems
        pool, on = drawn
        spec = GcpSpec.model_validate({**base.model_dump(), "pools": {"gpus": on}})
        found = of_component(PoolSpec.model_validate(pool), spec)
        assert sorted(one.rule for one in refused) == sorted(one.rule for one in found), drawn
        outcomes["refused" if refused else "accepted"] += 1

    check()
    assert min(outcomes["accepted"], outcomes["refused"]) >= 5, outcomes


def _sound() -> tuple[dict[str, Any], dict[str, Any]]:
    pool = {
        "name": "gpus",
        "machine": "g2-standard-48",
        "purpose": "training",
        "purchase": {"kind": "spot"},
        "zones": ["us-central1-a"],
        "rdma": False,
        "max_nodes": 2,
    }
    return pool, {}
