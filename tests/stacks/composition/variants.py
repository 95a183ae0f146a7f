"""The variants of each supported pair's stack file that are composed."""

from collections.abc import Mapping
from typing import Any

from tests.stacks.composition.composed import Change, Pair
from tests.stacks.stack_files import LOAD_BALANCER


def _merged(over: Mapping[str, Any]) -> Change:
    """Change the keys of `over`, at any depth; in a list the first item."""

    def merge(into: Any, change: Mapping[str, Any]) -> None:
        target = into[0] if isinstance(into, list) else into
        for key, value in change.items():
            if isinstance(value, Mapping) and target.get(key) and key != "purchase":
                merge(target[key], value)
            else:
                target[key] = value

    return lambda spec: merge(spec, over)


def _first_pool(**change: Any) -> Change:
    return _merged({"layout": {"pools": change}})


def _block(spec: Any) -> None:
    # Capacity Blocks are sold for p5, here in another zone than the one of the shipped stack.
    _first_pool(
        machine="p5.48xlarge", zones=["us-east-1a"], purchase={"kind": "block", "id": "cr-0123456789abcdef0"}
    )(spec)
    spec["data"]["shared_fs"]["zone"] = "us-east-1a"


def _third_pool(spec: Any) -> None:
    pools = spec["layout"]["pools"]
    pools.append({**pools[0], "name": "fine-tuning", "purpose": "fine_tuning", "rdma": False})


def _no_cpu_pool(spec: Any) -> None:
    assert spec["layout"]["pools"].pop()["name"] == "cpu"


def _shared(sharing: dict[str, Any]) -> Change:
    """The second pool, l4, with shared GPUs: behind its own queue, with quotas in shares."""

    def change(spec: Any) -> None:
        spec["on"].setdefault("pools", {}).setdefault("l4", {})["sharing"] = sharing
        spec["layout"]["pools"][1]["own_queue"] = True
        for team in spec["teams"]:
            if "l4" in team.get("gpus", {}):
                team["shares"] = {"l4": team["gpus"].pop("l4")}

    return change


def _aws_partitions(spec: Any) -> None:
    # An L4 is not cut; each of the eight A100 is, into seven.
    spec["layout"]["pools"][1] |= {"machine": "p4d.24xlarge", "zones": ["us-east-1b"]}
    _shared({"kind": "mig", "partition": "1g.5gb"})(spec)


MEDIUM_AWS: dict[str, Change] = {
    "validation-off": _merged({"smoke": {"enabled": False, "schedule": None}}),
    "no-scheduled-validation": _merged({"smoke": {"schedule": None}}),
    "no-shared-file-system": _merged({"data": {"shared_fs": None}}),
    "shared-file-system-over-rdma": _merged({"data": {"shared_fs": {"rdma": True, "capacity_gib": 38400}}}),
    "no-homes": _merged({"data": {"homes": False}}),
    "protected": _merged({"data": {"protect": True, "on_destroy": "keep"}}),
    "data-kept-on-destroy": _merged({"data": {"on_destroy": "keep"}}),
    "spot": _first_pool(purchase={"kind": "spot"}),
    "reserved": _first_pool(purchase={"kind": "reserved", "id": "cr-0123456789abcdef0"}),
    "block": _block,
    "no-rdma": _first_pool(rdma=False),
    "third-pool": _third_pool,
    "no-cpu-pool": _no_cpu_pool,
    "shared-queue": _first_pool(own_queue=False),
    "nat-per-zone": _merged({"on": {"nat": "per_zone"}}),
    "private-api": _merged({"layout": {"api_access": []}}),
    "anomalies-watched": _merged({"budget": {"anomaly_usd": 500}}),
    "claimed-devices": _merged({"on": {"efa_driver": "dra"}, "layout": {"pools": {"min_nodes": 1}}}),
    "load-balancer": _merged({"on": {"load_balancer": LOAD_BALANCER}}),
    "database-pauses": _merged({"on": {"database": {"min_acu": 0}}}),
    "partitions": _aws_partitions,
}

_RESERVATION = "projects/example-ml-dev/reservations/h100"


def _rdma_pool(machine: str, zone: str, **on: Any) -> Change:
    """The first pool on machines whose GPUs have a network of their own; it is placed by that network."""
    pool = {"machine": machine, "zones": [zone], "rdma": True, "purchase": {"kind": "spot"}}
    change = _first_pool(**pool)

    def both(spec: Any) -> None:
        change(spec)
        spec["on"]["pools"].pop("a100")
        spec["on"].update(on)

    return both


def _bought(kind: str, **more: str) -> Change:
    """The first pool bought in a way that places its nodes."""

    def change(spec: Any) -> None:
        _first_pool(purchase={"kind": kind, **more})(spec)
        spec["on"]["pools"].pop("a100")

    return change


def _calendar(spec: Any) -> None:
    _bought("block", id=_RESERVATION)(spec)
    spec["layout"]["pools"][0]["machine"] = "a3-megagpu-8g"  # A2 is not sold in calendar mode


def _partitions(spec: Any) -> None:
    # An L4 is not cut; an A100 is, into seven.
    spec["layout"]["pools"][1] |= {"machine": "a2-highgpu-1g", "zones": ["us-central1-a"]}
    _shared({"kind": "mig", "partition": "1g.5gb"})(spec)


_LUSTRE = {"capacity_gib": 18000, "throughput_mb_s_per_tib": 500, "zone": "us-central1-c"}
MEDIUM_GCP: dict[str, Change] = {
    "validation-off": _merged({"smoke": {"enabled": False, "schedule": None}}),
    "no-scheduled-validation": _merged({"smoke": {"schedule": None}}),
    "shared-file-system": _merged({"data": {"shared_fs": _LUSTRE}}),
    "no-homes": _merged({"data": {"homes": False}}),
    "protected": _merged({"data": {"protect": True, "on_destroy": "keep", "shared_fs": _LUSTRE}}),
    "data-kept-on-destroy": _merged({"data": {"on_destroy": "keep"}}),
    "on-demand": _first_pool(purchase={"kind": "on_demand"}),
    "reserved": _bought("reserved", id=_RESERVATION),
    "block": _calendar,
    "flex-start": _bought("flex_start"),
    "queued": _bought("queued"),
    "tcpxo": _rdma_pool("a3-megagpu-8g", "us-central1-a"),
    "tcpx": _rdma_pool("a3-highgpu-8g", "us-central1-a"),
    "rdma-managed": _rdma_pool("a3-ultragpu-8g", "us-central1-b"),
    "rdma-classic": _rdma_pool("a3-ultragpu-8g", "us-central1-b", accelerator_networks="classic"),
    "b200": _rdma_pool("a4-highgpu-8g", "us-central1-b"),
    "idle-gpus-watched": _merged({"layout": {"pools": {"min_nodes": 1}}, "smoke": {"schedule": None}}),
    "g4": _first_pool(machine="g4-standard-384", zones=["us-central1-b"]),
    "third-pool": _third_pool,
    "no-cpu-pool": _no_cpu_pool,
    "shared-queue": _first_pool(own_queue=False),
    "ip-endpoint": _merged({"layout": {"api_access": ["198.51.100.0/24"]}, "on": {"endpoint": "ip"}}),
    "dataset-cache": _merged({"on": {"dataset_cache": True}}),
    "rapid-checkpoints": _merged({"on": {"rapid_checkpoints": "us-central1-c"}}),
    "checkpoint-addon": _merged({"on": {"checkpoint_addon": True}}),
    "time-sharing": _shared({"kind": "time_sharing", "clients": 3}),
    "partitions": _partitions,
    "regional-database": _merged({"on": {"database": {"availability": "regional"}}}),
    "people-without-groups": _merged({"teams": {"members": ["user:ada@example.com"]}}),
}
VARIANTS: dict[Pair, dict[str, Change]] = {("medium", "aws"): MEDIUM_AWS, ("medium", "gcp"): MEDIUM_GCP}
# Variants whose graphs have other parts, not only other values: `make test` composes these. Each field has a
# row in tests/stacks/parity, so the others are in `make more`.
OFTEN = frozenset(
    {
        "b200",
        "block",
        "claimed-devices",
        "flex-start",
        "ip-endpoint",
        "load-balancer",
        "no-rdma",
        "partitions",
        "protected",
        "rdma-classic",
        "shared-file-system-over-rdma",
        "tcpx",
        "tcpxo",
        "third-pool",
        "validation-off",
    }
)
