"""Which figures of a result become which MLflow params, metrics and tags (pure)."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from smoke_training.evidence import Evidence
from smoke_training.evidence.fabric import sweep_of
from smoke_training.evidence.state import Reference
from smoke_training.evidence.system import System
from smoke_training.evidence.training import Training
from smoke_training.formulae.bandwidth import ALL_REDUCE
from smoke_training.plan import CHECKPOINT_EVERY, RESUME_STEPS
from smoke_training.record import accepted, system_metrics
from smoke_training.record.mlflow import Metric
from smoke_training.statistics import baseline as baselines

EXPERIMENT = "smoke-validation"
RUN_ID = "trainstack.run_id"
STACK = "trainstack.stack"
REGRESSION = "trainstack.regression"
# These three let a later run find its baseline in one search.
ACCEPTED = "trainstack.accepted"
FINGERPRINT = "trainstack.fingerprint"
BASELINE = "trainstack.baseline"
TEXT_LIMIT = 5000  # characters; MLflow takes 8000 of a tag and 6000 of a param
BASELINE_LIMIT = 8000

MANDATORY = (
    "owner", "team", "task", "dataset", "status", STACK, "trainstack.env", "trainstack.profile",
    "trainstack.cloud", "trainstack.region", "trainstack.instance_type", "trainstack.nodes",
    "trainstack.gpus_per_node", "trainstack.fabric", "trainstack.image_digest", "trainstack.git_sha",
    "trainstack.deploy_id", "trainstack.schema_version", "trainstack.verdict", "trainstack.owner",
    "trainstack.cost_center",
)  # fmt: skip
Result = Mapping[str, Any]
Point = tuple[str, object, int]


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
        STACK: plan["stack"],
        "trainstack.env": plan["stack"],
        "trainstack.profile": plan["profile"],
        "trainstack.depth": plan.get("depth"),
        "trainstack.partial": _yes(result["partial"]),
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
        REGRESSION: _yes(result["regression"]),
        "trainstack.regressed": ", ".join(result["regressed"]) or "none",
        "trainstack.owner": plan["owner"],
        "trainstack.cost_center": plan["cost_center"],
        RUN_ID: result["run_id"],
    }
    texts = {key: "unknown" if value is None else str(value)[:TEXT_LIMIT] for key, value in wanted.items()}
    return texts | _baseline_tags(result)


def _baseline_tags(result: Result) -> dict[str, str]:
    offered = accepted.offered(result)
    text = json.dumps(baselines.render(offered), separators=(",", ":")) if offered else ""
    if offered is None or len(text) > BASELINE_LIMIT:
        return {ACCEPTED: "false"}
    return {
        ACCEPTED: _yes(accepted.refusal(result) is None),
        FINGERPRINT: offered.fingerprint.digest(),
        BASELINE: text,
    }


def params(result: Result, found: Evidence) -> dict[str, str]:
    """Hyper-parameters, versions, seeds, sizes and thresholds, each threshold with its source."""
    plan, fingerprint = result["plan"], result["fingerprint"]
    known = result["comparable"]["fingerprint"] or {}
    wanted: dict[str, object] = {
        "world_size": plan["nodes"] * result["cluster"]["ranks_per_node"],
        "ranks_per_node": result["cluster"]["ranks_per_node"],
        "device": result["cluster"]["device"],
        "depth": plan.get("depth"),
        "seed": plan["seed"],
        "torch": fingerprint["torch"],
        "python": fingerprint["python"],
        "backend": fingerprint["backend"],
        "nccl": fingerprint["nccl"],
        "driver": known.get("driver"),
        "plugin": fingerprint.get("plugin"),
        "kernel": fingerprint["kernel"],
        "image": plan["image"],
        "env_sha256": fingerprint["env_sha256"],
        "code_sha256": fingerprint["code_sha256"],
        "resume.steps": RESUME_STEPS,
        "resume.checkpoint_every": CHECKPOINT_EVERY,
        "regression.limit": f"{baselines.LIMIT} (whole interval at one-sided 1e-4, rule of regression)",
        **_thresholds(result),
    }
    if (training := found.of(Training)) is not None:
        wanted["model.parameters"] = training.parameters
        wanted["model.gradient_bytes"] = training.gradient_bytes
        wanted["model.tokens_per_step"] = training.tokens_per_step
    if (sweep := sweep_of(found, ALL_REDUCE)) is not None:
        wanted["sweep.sizes_bytes"] = json.dumps(sweep.sizes)
    return {key: "unknown" if value is None else str(value)[:TEXT_LIMIT] for key, value in wanted.items()}


def _thresholds(result: Result) -> dict[str, str]:
    """What each check was held against, and where that comes from."""
    found = {}
    for check in result["checks"]:
        expected = check["expected"]
        if expected is not None and (expected["floor"] is not None or expected["value"] is not None):
            limit = expected["floor"] if expected["floor"] is not None else expected["value"]
            found[f"threshold.{check['id']}"] = f"{limit:g} ({expected['kind']}: {expected['source']})"
        if check["zone"] is not None:
            low, high = check["zone"]
            found[f"zone.{check['id']}"] = f"{low:g} .. {high:g} (indifference)"
    return found


def metrics(result: Result, found: Evidence, at_ms: int) -> list[Metric]:
    """Per-step series and one point per check; figures that are null are left out, the result says why.

    All but the nodes' own samples carry one timestamp, so that recording twice logs the same points.
    """
    points: list[Point] = [("duration_s", result["duration_s"], 0)]
    if (reference := found.of(Reference)) is not None:
        points += [("loss", loss, step) for step, loss in enumerate(reference.losses, 1)]
    if (training := found.of(Training)) is not None:
        slowest = [max(column) for column in zip(*training.step, strict=True)]
        points += [("step_time_s", seconds, step) for step, seconds in enumerate(slowest, 1)]
    for check in result["checks"]:
        points += _of_check(check)
    points += [(f"resources.{key}", result["resources"][key], 0) for key in _RESOURCES]
    points.append(("cost.estimated_usd", result["cost"]["estimated_usd"], 0))
    logged = [Metric(key, float(value), step, at_ms) for key, value, step in points if _number(value)]  # type: ignore[arg-type]
    return logged + [metric for line in found.all_of(System) for metric in _of_node(line)]


def _of_check(check: Mapping[str, Any]) -> Iterator[Point]:
    measured = check["measured"]
    if measured is None:
        return
    yield check["id"], measured["value"], 0
    if measured["ci"] is not None:
        yield f"{check['id']}.ci_low", measured["ci"][0], 0
        yield f"{check['id']}.ci_high", measured["ci"][1], 0
    yield from ((f"{check['id']}.{key}", value, 0) for key, value in check["noise"].items())
    for row in measured["detail"].get("sweep", ()):
        yield f"{check['id'].rpartition('.')[2]}_busbw_gb_s", row.get("busbw_gb_s"), row.get("size_bytes", 0)
    if check["id"] == "training.straggler":
        for row in measured["detail"].get("ranks", ()):
            yield f"straggler_slowdown.rank_{row.get('rank')}", row.get("slowdown"), 0


def _of_node(line: System) -> Iterator[Metric]:
    """One node's samples in MLflow's own key convention."""
    for step, (at_ms, values) in enumerate(zip(line.at_ms, line.values, strict=True)):
        for name, value in zip(line.names, values, strict=True):
            if value is not None and math.isfinite(value):
                yield Metric(system_metrics.metric_key(line.node, name), value, step, at_ms)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _yes(value: bool | None) -> str:
    return "unknown" if value is None else str(value).lower()


_RESOURCES = ("cpu_seconds", "max_rss_bytes", "gpu_memory_bytes")
