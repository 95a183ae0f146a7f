"""Plans and evidence for the pure tests."""

import json
import random
from typing import Any

from smoke_training import evidence
from smoke_training.evidence import Evidence
from smoke_training.formulae.bandwidth import COLLECTIVES
from smoke_training.plan import Plan, parse

CPU = {"kind": "preflight", "device": "cpu", "devices_found": 0, "device_forced": True, "ranks": 1}


def facts(node: int = 0, **changes: Any) -> dict[str, Any]:
    """What the launcher of one node without GPUs says of itself."""
    return {
        "node": node, "host": f"smoke-ab-{node}", "ranks": 1, "device": "cpu", "device_forced": True,
        "gpus": 0, "driver": None, "cpus": 2, "kernel": "6.1", "python": "3.11.7", "torch": "2.13.0",
        "code_sha256": "c0", "plan_sha256": "d0", "plan_nodes": 2, "plan_ranks_per_node": 1,
        "environment": {}, "rdma": [], "nics": [{"name": "eth0", "state": "up", "gbit_s": 10.0}], **changes,
    }  # fmt: skip


def hello(*joined: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The launchers that met; all of a plan of two nodes unless others are given."""
    found = list(joined) or [facts(0), facts(1)]
    return {
        "kind": "nodes", "wanted": 2, "joined": found, "strangers": 0, "waited_s": 0.5, "patience_s": 120.0,
        **changes,
    }  # fmt: skip


LIVENESS: dict[str, Any] = {
    "kind": "liveness", "watched_s": 40.0, "looks": 700, "hang_timeout_s": 30.0,
    "ranks": [
        {"rank": r, "node": r, "status": "DONE", "phase": "resume", "attempt": 1, "sequence": 90,
         "beats": 300, "longest_idle_s": 1.5} for r in (0, 1)
    ],
}  # fmt: skip


def document(**changes: Any) -> dict[str, Any]:
    return {
        "schema": "trainstack.smoke-plan/1",
        "stack": "dev-aws",
        "nodes": 2,
        "ranks_per_node": 1,
        "instance_type": "p4d.24xlarge",
        "gpus_per_node": 8,
        "fabric": "efa",
        "cloud": "aws",
        "region": "us-east-1",
        "profile": "medium",
        "owner": "platform",
        "team": "research",
        "cost_center": "ml",
        "hourly_cost_usd": 43.9,
        "min_scaling_efficiency": 0.8,
        "max_straggler_slowdown": 1.15,
        "expected_busbw_gb_s": None,
        "timeout_s": 240,
        "accept": ["PASS"],
        "image": "example/training@sha256:00",
        "code_sha256": "00",
        "dataset": "synthetic",
        "task": "deploy-validation",
        **changes,
    }


def plan(**changes: Any) -> Plan:
    return parse(json.dumps(document(**changes)))


def series(slowdown: float = 1.0, iterations: int = 80, seed: int = 1, sigma: float = 0.03) -> list[float]:
    dice = random.Random(seed)
    return [0.02 * slowdown * dice.lognormvariate(0, sigma) for _ in range(iterations)]


def lines(slowdown: float = 1.0, communication: float = 1.05) -> list[dict[str, Any]]:
    """Evidence of a complete two-rank run; rank 1 computes `slowdown` times slower."""
    compute = [series(1.0, seed=1), series(slowdown, seed=2)]
    step = [[max(pair) * communication for pair in zip(*compute, strict=True)]] * 2
    rank = {
        "device": "cpu", "backend": "gloo", "python": "3.11.7", "torch": "2.13.0", "kernel": "6.1", "cpus": 1,
        "nccl": None, "gpu_memory_bytes": None,
    }  # fmt: skip
    outcome = {
        "entries": 100, "different": [], "losses_compared": 12, "losses_equal": 12,
        "torn_offered": ["one flipped bit"], "torn_accepted": [],
    }  # fmt: skip
    usage = {"cpu_seconds": 4.0, "max_rss_bytes": 5_000_000, "gpu_memory_bytes": None}
    return [
        {"kind": "world", "wanted": 2, "ranks": [
            {"rank": r, "node": r, "host": f"smoke-ab-{r}", "pid": 10 + r, **rank} for r in (0, 1)
        ]},
        sweeps()[0],
        {"kind": "training", "compute": compute, "compute_cpu": [series(1.0, seed=3), series(1.0, seed=4)],
         "compute_queue": [[0.0] * 80] * 2, "step": step, "alone": series(iterations=20),
         **spins(), "parameters": 100, "gradient_bytes": 400, "tokens_per_step": 64},
        {"kind": "parity", "dtype": "float64", "many": [2.0] * 20, "one": [2.0] * 20},
        {"kind": "reference", "losses": [3.0, 2.5], "checkpoint_seconds": [0.01], "checkpoint_bytes": 100,
         "entries": 40},
        {"kind": "usage", "ranks": [{"rank": r, **usage} for r in (0, 1)]},
        {"kind": "resume", "victim": 1, "signal": 9, "killed_at_step": 10, "resumed_from": 8, "every": 4,
         "mttr_seconds": 6.5, "ranks": [{"rank": r, **outcome} for r in (0, 1)]},
        *sweeps()[1:],
        *payloads(),
        {"kind": "fitness", **spins()},
        decomposition(),
        *numerics(),
        storages(),
        *checkpoints(),
        *wires(),
        {"kind": "finished"},
    ]  # fmt: skip


def spins(spread: float = 0.01) -> dict[str, Any]:
    """Null measurements of two ranks on quiet machines, whose control groups were never throttled."""
    window = {"steal_share": 0.0, "cpu_pressure": 0.0, "throttled_periods": 0, "throttled_seconds": 0.0}
    spin = [[0.004 * factor for factor in (1.0, 1 - spread, 1 + spread)] * 10] * 2
    return {"spin": spin, "spin_queue": [[0.0] * 30] * 2, "windows": [window] * 2}


def decomposition() -> dict[str, Any]:
    """Twenty steps of two ranks whose parts sum to 40 ms."""
    parts = {"data": 0.002, "compute": 0.03, "exposed": 0.005, "checkpoint": 0.001, "other": 0.002}
    rows = {name: [[value] * 20] * 2 for name, value in {**parts, "total": 0.04}.items()}
    return {"kind": "decomposition", **rows, "bare": [0.01] * 20, "tokens_per_step": 64,
            "flops_per_token": 1e6, "dtype": "float32", "device": "cpu"}  # fmt: skip


def numerics() -> list[dict[str, Any]]:
    """Gradients of two phases, finite and equal; those of the first are computed again and again."""
    repeats = [{"rank": r, "passes": 160, "odd": 0, "first": None} for r in (0, 1)]
    return [
        {"kind": "numerics", "phase": phase, "passes": 160, "nonfinite": [], "steps": [1, 3, 5],
         "checksums": [["aa", "bb", "cc"]] * 2, "differing": [],
         "repeats": repeats if phase == "training" else []}
        for phase in ("training", "parity")
    ]  # fmt: skip


def storages(factor: float = 1.0, name: str = "scratch", repetitions: int = 160) -> dict[str, Any]:
    """Writes and cold reads of two nodes; everything takes `factor` times as long on node 1."""
    rows = [
        series(0.25, repetitions, seed=5, sigma=0.1),
        series(0.25 * factor, repetitions, seed=6, sigma=0.1),
    ]
    queue = [[0.0] * repetitions] * 2
    return {"kind": "storage", "name": name, "path": f"/mnt/{name}", "nodes": [0, 1],
            "write_bytes": 4 << 20, "write": rows, "write_queue": queue, "first_write_mb_s": [300.0, 300.0],
            "read_bytes": 16 << 20, "read": rows, "read_queue": queue, "resident_share": [0.0, 0.0],
            "open": [[1e-5] * 100] * 2, "stream_mb_s": [400.0, 400.0]}  # fmt: skip


def wires() -> list[dict[str, Any]]:
    """Two nodes of one machine: nothing lies between them that could be measured."""
    reason = "all nodes are on this machine, joined by its loopback interface"
    return [
        {"kind": "traffic", "operations": 6, "size_bytes": 1 << 22, "seconds": 0.1, "backend": "gloo",
         "nodes": [], "nothing_between": reason, "phase_seconds": 5.0, "phase_tx_bytes": []},
        {"kind": "pairs_skipped", "reason": reason},
    ]  # fmt: skip


def checkpoints() -> list[dict[str, Any]]:
    """An asynchronous checkpoint that came back, and what the restarted ranks found."""
    return [
        {"kind": "checkpoint", "name": "checkpoints", "path": "/mnt/checkpoints", "ranks": 2,
         "bytes": 16 << 20, "stall_s": [0.02] * 3, "commit_s": [0.1] * 3, "mark_s": [0.01] * 3,
         "restore_s": 0.1, "restore_resident_share": 0.0, "entries": 8, "different": [],
         "torn_offered": ["rank 0: no mark"], "torn_accepted": [], "left_behind": []},
        {"kind": "integrity", "name": "checkpoints", "path": "/mnt/checkpoints", "resumed_from": 8,
         "committed": 8, "damaged": [], "unreadable": []},
    ]  # fmt: skip


def sweeps(seconds: float = 1e-3) -> list[dict[str, Any]]:
    """Sweeps of all collectives: 1 KiB in a tenth of `seconds`, 1 MiB in `seconds`."""
    return [
        {"kind": "collective", "name": name, "sizes": [1024, 1 << 20], "queue_share": 0.0, "steal_share": 0.0,
         "seconds": [[seconds / 10] * 25, [seconds] * 25]}
        for name in COLLECTIVES
    ]  # fmt: skip


def payloads() -> list[dict[str, Any]]:
    """Contents of all collectives without a wrong element."""
    return [
        {"kind": "payload", "name": name, "sizes": [1024], "elements": 1000, "wrong": []}
        for name in COLLECTIVES
    ]


def parsed(items: list[dict[str, Any]]) -> Evidence:
    """The evidence of a run without GPUs whose ranks delivered `items`."""
    return evidence.parse(json.dumps(item) for item in [CPU, hello(), LIVENESS, *items])
