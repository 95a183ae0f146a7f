"""The plan that a laboratory run validates."""

from typing import Any

from tests.faults.network import Wires


def document(
    nodes: int, wires: Wires, phases: tuple[str, ...] | None = None, **changes: Any
) -> dict[str, Any]:
    """A plan for one rank per node on these wires; `phases` limits it, None runs all of the quick depth."""
    return {
        "schema": "trainstack.smoke-plan/1",
        "stack": "fault-laboratory",
        "nodes": nodes,
        "ranks_per_node": 1,
        "instance_type": "namespace",
        "gpus_per_node": 0,
        "fabric": "tcp",
        "cloud": "laboratory",
        "region": "local",
        "profile": "faults",
        "owner": "tests",
        "team": "tests",
        "cost_center": "tests",
        "hourly_cost_usd": None,
        "min_scaling_efficiency": 0.5,
        "max_straggler_slowdown": 1.15,
        "expected_busbw_gb_s": None,
        "timeout_s": 120,
        "accept": ["PASS"],
        "image": "none",
        "code_sha256": "none",
        "dataset": "synthetic",
        "task": "fault-detection",
        "rails": list(wires.rails),
        "rail_gbit_s": wires.rail_gbit_s,
        "network_gbit_s": wires.rail_gbit_s,  # gloo trains over one rail, however many there are
        "phases": None if phases is None else list(phases),
        "hang_timeout_s": 10,
        "join_timeout_s": 30,
        "seed": 20261121,
        **changes,
    }
