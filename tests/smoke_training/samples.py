"""Plans and evidence for the pure tests."""

import json
import random
from typing import Any

from smoke_training import evidence
from smoke_training.evidence import Evidence
from smoke_training.plan import Plan, parse
from smoke_training.verdict import Preflight

CPU = Preflight(device="cpu", devices_found=0, device_forced=True, ranks=1)


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
        {"kind": "collective", "sizes": [1024, 1 << 20], "seconds": [[1e-4] * 9, [1e-3] * 9],
         "payload_elements": 1000, "payload_wrong": {"1024": 0, "1048576": 0}, "payload_suspects": {}},
        {"kind": "training", "compute": compute, "compute_cpu": [series(1.0, seed=3), series(1.0, seed=4)],
         "compute_queue": [[0.0] * 80] * 2, "step": step, "alone": series(iterations=20),
         "throttled_periods": 0,
         "steal_share": 0.0, "parameters": 100, "gradient_bytes": 400, "tokens_per_step": 64},
        {"kind": "parity", "dtype": "float64", "many": [2.0] * 20, "one": [2.0] * 20},
        {"kind": "reference", "losses": [3.0, 2.5], "checkpoint_seconds": [0.01], "checkpoint_bytes": 100,
         "entries": 40},
        {"kind": "usage", "ranks": [{"rank": r, **usage} for r in (0, 1)]},
        {"kind": "resume", "victim": 1, "signal": 9, "killed_at_step": 10, "resumed_from": 8, "every": 4,
         "mttr_seconds": 6.5, "ranks": [{"rank": r, **outcome} for r in (0, 1)]},
        {"kind": "finished"},
    ]  # fmt: skip


def parsed(items: list[dict[str, Any]]) -> Evidence:
    return evidence.parse(json.dumps(item) for item in items)
