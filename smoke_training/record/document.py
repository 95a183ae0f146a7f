"""The result document and its parts (pure): a `Judgement` and its circumstances as JSON-ready values."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smoke_training import report
from smoke_training.evidence import Evidence
from smoke_training.formulae import estimated_cost_usd
from smoke_training.model import EXIT_CODES, SCHEMA, Check, Judgement
from smoke_training.plan import Plan, kill_schedule
from smoke_training.verdict import Preflight


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """When, where and with which code the run happened; times are UTC ISO 8601 texts and seconds."""

    run_id: str
    started: str
    duration_s: float
    python: str
    kernel: str
    code_sha256: str
    environment_sha256: str


def build(
    plan: Plan, preflight: Preflight, found: Evidence, judged: Judgement, when: Circumstances
) -> dict[str, object]:
    """The whole result; every number carries a unit beside it, every null a reason."""
    return {
        "schema": SCHEMA,
        "run_id": when.run_id,
        "started": when.started,
        "duration_s": round(when.duration_s, 3),
        "verdict": str(judged.verdict),
        "exit_code": EXIT_CODES[judged.verdict],
        "headline": report.headline(judged),
        "regression": None,
        "regression_reason": "no baseline of this stack is kept yet",
        "plan": dataclasses.asdict(plan),
        "cluster": _cluster(plan, preflight, found),
        "fingerprint": _fingerprint(plan, found, when),
        "checks": [_check(check) for check in judged.checks],
        "resources": _resources(found),
        "cost": _cost(plan, when),
        "notes": list(judged.notes),
        "artifacts": [],
        "mlflow": {"synced": False, "run_id": None, "reason": "not attempted yet"},
    }


def environment_digest(environment: Mapping[str, str]) -> str:
    """SHA-256 of the variables that steer communication and threading (names and values, sorted)."""
    relevant = ("NCCL_", "GLOO_", "FI_", "TORCH_", "OMP_", "CUDA_", "UCX_")
    chosen = sorted((k, v) for k, v in environment.items() if k.startswith(relevant))
    return hashlib.sha256(json.dumps(chosen).encode()).hexdigest()


def _cluster(plan: Plan, preflight: Preflight, found: Evidence) -> dict[str, object]:
    ranks = [dataclasses.asdict(rank) for rank in found.world.ranks] if found.world else []
    return {
        "cloud": plan.cloud,
        "region": plan.region,
        "instance_type": plan.instance_type,
        "nodes": plan.nodes,
        "gpus_per_node": plan.gpus_per_node,
        "ranks_per_node": preflight.ranks,
        "device": preflight.device,
        "fabric": plan.fabric,
        "ranks": ranks,
        "reason": None if ranks else "the ranks never reported",
    }


def _fingerprint(plan: Plan, found: Evidence, when: Circumstances) -> dict[str, object]:
    first = found.world.ranks[0] if found.world and found.world.ranks else None
    return {
        "image": plan.image,
        "torch": first.torch if first else None,
        "backend": first.backend if first else None,
        "nccl": first.nccl if first else None,
        "python": when.python,
        "kernel": when.kernel,
        "code_sha256": when.code_sha256,
        "code_matches_plan": when.code_sha256 == plan.code_sha256,
        "git_sha": plan.git_sha,
        "env_sha256": when.environment_sha256,
        "seed": plan.seed,
        "kill_schedule": dataclasses.asdict(kill_schedule(plan.seed, len(found.world.ranks)))
        if found.world
        else None,
    }


def _check(check: Check) -> dict[str, object]:
    document = dataclasses.asdict(check)
    document["status"] = str(check.status)
    return document


def _resources(found: Evidence) -> dict[str, object]:
    gpu = [usage.gpu_memory_bytes for usage in found.usage if usage.gpu_memory_bytes is not None]
    known = bool(found.usage)
    return {
        "cpu_seconds": round(sum(usage.cpu_seconds for usage in found.usage), 3) if known else None,
        "max_rss_bytes": max((usage.max_rss_bytes for usage in found.usage), default=None),
        "gpu_memory_bytes": max(gpu, default=None),
        "reason": None if gpu else ("no GPU in use" if known else "the ranks never reported"),
    }


def _cost(plan: Plan, when: Circumstances) -> dict[str, object]:
    cost = estimated_cost_usd(plan.hourly_cost_usd, when.duration_s)
    reason = "the plan has no hourly price" if cost is None else None
    return {"estimated_usd": cost, "hourly_cost_usd": plan.hourly_cost_usd, "reason": reason}


def plain(document: dict[str, object]) -> dict[str, Any]:
    """The document as readers of the file will see it (tuples are arrays, no infinities)."""
    found: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    return found
