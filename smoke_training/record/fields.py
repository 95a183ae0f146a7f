"""Which figures of a result become which MLflow params, metrics and tags (pure)."""

import json
import math
from collections.abc import Mapping
from typing import Any

from smoke_training.estimators import Z_DECISION
from smoke_training.evidence import Evidence
from smoke_training.judges.fabric import BUSBW_FLOOR
from smoke_training.judges.state import PARITY_LIMITS
from smoke_training.plan import CHECKPOINT_EVERY, RESUME_STEPS
from smoke_training.record.mlflow import Metric
from smoke_training.straggler import BLOCK, CAP, FIRST_LOOK, NEGLIGIBLE_SLOWDOWN

EXPERIMENT = "smoke-validation"
Result = Mapping[str, Any]


def run_name(result: Result) -> str:
    """A name people recognise in a list."""
    return f"{result['plan']['stack']}-{result['verdict'].lower()}-{result['run_id'][:8]}"


def run_status(result: Result) -> str:
    """FINISHED for a run whose answer is not a failure; everything else is FAILED, never missing."""
    return "FINISHED" if result["verdict"] in ("PASS", "INCONCLUSIVE", "SKIPPED") else "FAILED"


def tags(result: Result) -> dict[str, str]:
    """Mandatory tags; a value that is not known is the text `unknown`, so that the tag is never missing."""
    plan, cluster, fingerprint = result["plan"], result["cluster"], result["fingerprint"]
    wanted = {
        "owner": plan["owner"],
        "team": plan["team"],
        "task": plan["task"],
        "dataset": plan["dataset"],
        "status": result["verdict"],
        "mlflow.source.type": "JOB",
        "mlflow.source.git.commit": plan["git_sha"],
        "mlflow.note.content": result["headline"],
        "trainstack.stack": plan["stack"],
        "trainstack.env": plan["stack"],
        "trainstack.profile": plan["profile"],
        "trainstack.cloud": plan["cloud"],
        "trainstack.region": plan["region"],
        "trainstack.instance_type": plan["instance_type"],
        "trainstack.nodes": cluster["nodes"],
        "trainstack.gpus_per_node": plan["gpus_per_node"],
        "trainstack.fabric": plan["fabric"],
        "trainstack.image_digest": plan["image"],
        "trainstack.git_sha": plan["git_sha"],
        "trainstack.code_sha256": fingerprint["code_sha256"],
        "trainstack.deploy_id": plan["deploy_id"],
        "trainstack.schema_version": result["schema"],
        "trainstack.verdict": result["verdict"],
        "trainstack.owner": plan["owner"],
        "trainstack.cost_center": plan["cost_center"],
        "trainstack.run_id": result["run_id"],
    }
    return {key: "unknown" if value is None else str(value)[:5000] for key, value in wanted.items()}


def params(result: Result, found: Evidence) -> dict[str, str]:
    """Hyper-parameters, versions, seeds, sizes and thresholds, each threshold with its source."""
    plan, fingerprint = result["plan"], result["fingerprint"]
    wanted: dict[str, object] = {
        "world_size": plan["nodes"] * result["cluster"]["ranks_per_node"],
        "ranks_per_node": result["cluster"]["ranks_per_node"],
        "device": result["cluster"]["device"],
        "seed": plan["seed"],
        "torch": fingerprint["torch"],
        "python": fingerprint["python"],
        "backend": fingerprint["backend"],
        "nccl": fingerprint["nccl"],
        "kernel": fingerprint["kernel"],
        "image": plan["image"],
        "env_sha256": fingerprint["env_sha256"],
        "code_sha256": fingerprint["code_sha256"],
        "threshold.scaling_efficiency": f"{plan['min_scaling_efficiency']} (run plan)",
        "threshold.straggler_slowdown": f"{plan['max_straggler_slowdown']} (run plan)",
        "threshold.negligible_slowdown": f"{NEGLIGIBLE_SLOWDOWN} (straggler rule)",
        "threshold.decision_z": f"{Z_DECISION} (one-sided 1e-5)",
        "threshold.loss_parity": f"{PARITY_LIMITS} (rounding)",
        "threshold.busbw_floor": f"{BUSBW_FLOOR} of the published figure",
        "rule.block_iterations": BLOCK,
        "rule.first_look": FIRST_LOOK,
        "rule.cap": CAP,
        "resume.steps": RESUME_STEPS,
        "resume.checkpoint_every": CHECKPOINT_EVERY,
    }
    if found.training is not None:
        wanted["model.parameters"] = found.training.parameters
        wanted["model.gradient_bytes"] = found.training.gradient_bytes
        wanted["model.tokens_per_step"] = found.training.tokens_per_step
    if found.collective is not None:
        wanted["sweep.sizes_bytes"] = json.dumps(found.collective.sizes)
    return {key: "unknown" if value is None else str(value)[:5000] for key, value in wanted.items()}


def metrics(result: Result, found: Evidence, now_ms: int) -> list[Metric]:
    """Per-step series and one point per check; figures that are null are left out, the result says why."""
    points: list[tuple[str, object, int]] = [("duration_s", result["duration_s"], 0)]
    if found.reference is not None:
        points += [("loss", loss, step) for step, loss in enumerate(found.reference.losses, 1)]
    if found.training is not None:
        slowest = [max(column) for column in zip(*found.training.step, strict=True)]
        points += [("step_time_s", seconds, step) for step, seconds in enumerate(slowest, 1)]
    for check in result["checks"]:
        measured = check["measured"]
        if measured is not None:
            points.append((check["id"], measured["value"], 0))
            sweep = measured["detail"].get("sweep", [])
            points += [("all_reduce_busbw_gb_s", row["busbw_gb_s"], row["size_bytes"]) for row in sweep]
            points += [
                (f"straggler_slowdown.rank_{row['rank']}", row["slowdown"], 0)
                for row in measured["detail"].get("ranks", [])
            ]
            points += [(f"{check['id']}.{key}", value, 0) for key, value in check["noise"].items()]
    points += [(f"resources.{key}", result["resources"][key], 0) for key in _RESOURCES]
    points.append(("cost.estimated_usd", result["cost"]["estimated_usd"], 0))
    return [
        Metric(key, float(value), step, now_ms)
        for key, value, step in points
        if isinstance(value, int | float) and math.isfinite(value)
    ]


_RESOURCES = ("cpu_seconds", "max_rss_bytes", "gpu_memory_bytes")
