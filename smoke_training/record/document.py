"""The result document and its parts (pure): a `Judgement` and its circumstances as JSON-ready values."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smoke_training.evidence import Evidence
from smoke_training.evidence.world import Preflight, Usage, World
from smoke_training.judges.run import baseline as own
from smoke_training.model import EXIT_CODES, SCHEMA, Check, Judgement, Measured, Verdict
from smoke_training.plan import Plan, kill_schedule
from smoke_training.record import accepted, references, termination


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


def build(plan: Plan, found: Evidence, judged: Judgement, when: Circumstances) -> dict[str, Any]:
    """The whole result; every number carries a unit beside it, every null a reason."""
    result: dict[str, object] = {
        "schema": SCHEMA,
        "run_id": when.run_id,
        "started": when.started,
        "duration_s": round(when.duration_s, 3),
        "verdict": str(judged.verdict),
        "exit_code": EXIT_CODES[judged.verdict],
        "headline": termination.headline(judged),
        "partial": plan.partial,
        **_regression(judged),
        "plan": dataclasses.asdict(plan),
        "cluster": _cluster(plan, found),
        "fingerprint": _fingerprint(plan, found, when),
        "checks": [_check(check, judged.checks) for check in judged.checks],
        "comparable": _comparable(plan, found, judged),
        "resources": _resources(found),
        "cost": _cost(plan, when),
        "notes": list(judged.notes),
        "artifacts": [],
        "mlflow": {"synced": False, "run_id": None, "reason": "not attempted yet"},
    }
    ready = plain(result)
    reason = accepted.refusal(ready)
    return {**ready, "baseline": {"accepted": reason is None, "reason": reason}}


def environment_digest(environment: Mapping[str, str]) -> str:
    """SHA-256 of the variables that steer communication and threading (names and values, sorted)."""
    relevant = ("NCCL_", "GLOO_", "FI_", "TORCH_", "OMP_", "CUDA_", "UCX_")
    chosen = sorted((k, v) for k, v in environment.items() if k.startswith(relevant))
    return hashlib.sha256(json.dumps(chosen).encode()).hexdigest()


def _cluster(plan: Plan, found: Evidence) -> dict[str, object]:
    world, preflight = found.of(World), found.of(Preflight)
    ranks = [dataclasses.asdict(rank) for rank in world.ranks] if world else []
    return {
        "cloud": plan.cloud,
        "region": plan.region,
        "instance_type": plan.instance_type,
        "nodes": plan.nodes,
        "gpus_per_node": plan.gpus_per_node,
        "ranks_per_node": preflight.ranks if preflight else 1,
        "device": preflight.device if preflight else "unknown",
        "fabric": plan.fabric,
        "ranks": ranks,
        "reason": None if ranks else "the ranks never reported",
    }


def _fingerprint(plan: Plan, found: Evidence, when: Circumstances) -> dict[str, object]:
    world = found.of(World)
    first = world.ranks[0] if world and world.ranks else None
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
        "kill_schedule": dataclasses.asdict(kill_schedule(plan.seed, len(world.ranks))) if world else None,
    }


def _check(check: Check, checks: Sequence[Check]) -> dict[str, object]:
    document = dataclasses.asdict(check)
    document["status"] = str(check.status)
    document["references"] = references.of(check, checks)
    if check.measured is not None:
        document["measured"] |= _known(check.measured)
    return document


def _known(measured: Measured) -> dict[str, object]:
    """A value that is not finite becomes null with its reason, an interval without an end null."""
    changed: dict[str, object] = {}
    if measured.value is not None and not math.isfinite(measured.value):
        changed |= {"value": None, "reason": measured.reason or f"came out as {measured.value}"}
    if measured.ci is not None and not all(map(math.isfinite, measured.ci)):
        changed |= {"ci": None}
    return changed


def _regression(judged: Judgement) -> dict[str, object]:
    """Apart from the verdict: whether the run is worse than the stack's accepted ones, and in what."""
    found = next((check for check in judged.checks if check.id == own.ID), None)
    if found is None or found.status not in (Verdict.PASS, Verdict.FAIL):
        reason = found.message if found else "not compared"
        return {"regression": None, "regression_reason": reason, "regressed": []}
    named = found.measured.detail["regressed"] if found.measured else []
    return {
        "regression": found.status is Verdict.FAIL,
        "regression_reason": found.message,
        "regressed": named,
    }


def _comparable(plan: Plan, found: Evidence, judged: Judgement) -> dict[str, object]:
    """What other runs can be compared with: figures by check id, and what they hold for."""
    known = own.fingerprint(plan, found)
    return {
        "fingerprint": dataclasses.asdict(known) if known else None,
        "figures": {name: dataclasses.asdict(figure) for name, figure in own.figures(judged.checks).items()},
        "left_out": own.left_out(judged.checks),
        "reason": None if known else "the ranks never said with what they run",
    }


def _resources(found: Evidence) -> dict[str, object]:
    used = [rank for usage in found.all_of(Usage) for rank in usage.ranks]
    gpu = [usage.gpu_memory_bytes for usage in used if usage.gpu_memory_bytes is not None]
    known = bool(used)
    return {
        "cpu_seconds": round(sum(usage.cpu_seconds for usage in used), 3) if known else None,
        "max_rss_bytes": max((usage.max_rss_bytes for usage in used), default=None),
        "gpu_memory_bytes": max(gpu, default=None),
        "reason": None if gpu else ("no GPU in use" if known else "the ranks never reported"),
    }


def _cost(plan: Plan, when: Circumstances) -> dict[str, object]:
    cost = plan.cost_usd(when.duration_s)
    reason = "the plan has no hourly price" if cost is None else None
    return {"estimated_usd": cost, "hourly_cost_usd": plan.hourly_cost_usd, "reason": reason}


def plain(document: Mapping[str, object]) -> dict[str, Any]:
    """The document as readers of the file will see it: tuples are arrays, what is not finite is null."""
    found: dict[str, Any] = json.loads(json.dumps(_finite(document), allow_nan=False))
    return found


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
