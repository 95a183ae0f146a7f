"""The result document and its parts (pure): a `Judgement` and its circumstances as JSON-ready values."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smoke_training.evidence import Evidence
from smoke_training.evidence.world import LauncherPreflight, ResourceUsage, World
from smoke_training.judges.run import baseline as own
from smoke_training.model import EXIT_CODES, SCHEMA, Check, Judgement, Verdict
from smoke_training.plan import Plan, kill_schedule
from smoke_training.record import accepted, references, termination


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """Time, host and code of the run; times are UTC ISO 8601 texts and seconds."""

    run_id: str
    started: str
    duration_s: float
    python: str
    kernel: str
    code_sha256: str
    environment_sha256: str


def build(plan: Plan, found: Evidence, judged: Judgement, when: Circumstances) -> dict[str, Any]:
    """Build the whole result; every number has a unit beside it, every null a reason."""
    cost = plan.cost_usd(when.duration_s)
    free = "the plan has no hourly price" if cost is None else None
    result: dict[str, object] = {
        "run_id": when.run_id,
        "started": when.started,
        "duration_s": round(when.duration_s, 3),
        "partial": plan.partial,
        **_regression(judged),
        "plan": dataclasses.asdict(plan),
        "cluster": _cluster(plan, found),
        "fingerprint": _fingerprint(plan, found, when),
        "comparable": _comparable(plan, found, judged),
        "resources": _resources(found),
        "cost": {"estimated_usd": cost, "hourly_cost_usd": plan.hourly_cost_usd, "reason": free},
        "artifacts": [],
        "mlflow": {"synced": False, "run_id": None, "reason": "not attempted yet"},
    }
    ready = {"schema": SCHEMA, **of_judgement(judged), **_ready(result)}
    reason = accepted.refusal(ready)
    return {**ready, "baseline": {"accepted": reason is None, "reason": reason}}


def of_judgement(judged: Judgement) -> dict[str, Any]:
    """The part of a result that any evidence has: verdict, headline, checks, notes."""
    return _ready(
        {
            "verdict": judged.verdict,
            "exit_code": EXIT_CODES[judged.verdict],
            "headline": termination.headline(judged),
            "checks": [_check(check, judged.checks) for check in judged.checks],
            "notes": list(judged.notes),
        }
    )


def _ready(part: Mapping[str, object]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(_finite(part), allow_nan=False))
    return found


def environment_digest(environment: Mapping[str, str]) -> str:
    """Return the SHA-256 of the variables for communication and threading (names and values, sorted)."""
    relevant = ("NCCL_", "GLOO_", "FI_", "TORCH_", "OMP_", "CUDA_", "UCX_")
    chosen = sorted((k, v) for k, v in environment.items() if k.startswith(relevant))
    return hashlib.sha256(json.dumps(chosen).encode()).hexdigest()


def _cluster(plan: Plan, found: Evidence) -> dict[str, object]:
    world, preflight = found.of(World), found.of(LauncherPreflight)
    planned = ("cloud", "region", "instance_type", "nodes", "gpus_per_node", "fabric")
    return {
        **{key: getattr(plan, key) for key in planned},
        "ranks_per_node": preflight.ranks if preflight else 1,
        "device": preflight.device if preflight else "unknown",
        "ranks": [dataclasses.asdict(rank) for rank in world.ranks] if world else [],
        "reason": None if world and world.ranks else "the ranks never reported",
    }


def _fingerprint(plan: Plan, found: Evidence, when: Circumstances) -> dict[str, object]:
    world = found.of(World)
    first = world.ranks[0] if world and world.ranks else None
    return {
        **{key: getattr(plan, key) for key in ("image", "git_sha", "seed")},
        **{key: getattr(first, key, None) for key in ("torch", "backend", "nccl")},
        **{key: getattr(when, key) for key in ("python", "kernel", "code_sha256")},
        "code_matches_plan": when.code_sha256 == plan.code_sha256,
        "env_sha256": when.environment_sha256,
        "kill_schedule": dataclasses.asdict(kill_schedule(plan.seed, len(world.ranks))) if world else None,
    }


def _check(check: Check, checks: Sequence[Check]) -> dict[str, object]:
    """A check; a value that is not finite becomes null with its reason, an interval without an end null."""
    document = {**dataclasses.asdict(check), "references": references.of(check, checks)}
    found = check.measured
    if found is not None and found.value is not None and not math.isfinite(found.value):
        document["measured"] |= {"value": None, "reason": found.reason or f"came out as {found.value}"}
    if found is not None and found.ci is not None and not all(map(math.isfinite, found.ci)):
        document["measured"]["ci"] = None
    return document


def _regression(judged: Judgement) -> dict[str, object]:
    """Return the regression part, separate from the verdict: worse figures than accepted runs."""
    found = next((check for check in judged.checks if check.id == own.ID), None)
    if found is None:
        return {"regression": None, "regression_reason": "not compared", "regressed": []}
    answer = {Verdict.FAIL: True, Verdict.PASS: False}.get(found.status)
    named = found.measured.detail["regressed"] if found.measured and answer is not None else []
    return {"regression": answer, "regression_reason": found.message, "regressed": named}


def _comparable(plan: Plan, found: Evidence, judged: Judgement) -> dict[str, object]:
    known, accepted_by = own.fingerprint(plan, found), own.acceptance(plan, found)
    return {
        "acceptance": dataclasses.asdict(accepted_by) if accepted_by else None,
        "fingerprint": dataclasses.asdict(known) if known else None,
        "figures": {name: dataclasses.asdict(figure) for name, figure in own.figures(judged.checks).items()},
        "left_out": own.left_out(judged.checks),
        "reason": None if known else "the ranks did not report their software",
    }


def _resources(found: Evidence) -> dict[str, object]:
    used = [rank for usage in found.all_of(ResourceUsage) for rank in usage.ranks]
    gpu = [usage.gpu_memory_bytes for usage in used if usage.gpu_memory_bytes is not None]
    return {
        "cpu_seconds": round(sum(usage.cpu_seconds for usage in used), 3) if used else None,
        "max_rss_bytes": max((usage.max_rss_bytes for usage in used), default=None),
        "gpu_memory_bytes": max(gpu, default=None),
        "reason": None if gpu else ("no GPU in use" if used else "the ranks never reported"),
    }


def _finite(value: object) -> object:
    """Return a part of the document with null for values that JSON cannot represent."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
