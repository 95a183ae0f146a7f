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
            if isinstance(value, Mapping) and key in target and key != "purchase":
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
}
VARIANTS: dict[Pair, dict[str, Change]] = {("medium", "aws"): MEDIUM_AWS}
