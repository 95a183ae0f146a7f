"""Map a result to MLflow params, metrics and tags (pure)."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from smoke_training.evidence import Evidence
from smoke_training.evidence.fabric import sweep_of
from smoke_training.evidence.state import ReferenceRun
from smoke_training.evidence.training import Training
from smoke_training.evidence.world import System
from smoke_training.formulae.bandwidth import ALL_REDUCE
from smoke_training.plan import CHECKPOINT_EVERY, RESUME_STEPS
from smoke_training.record import accepted
from smoke_training.record.mlflow import MetricPoint
from smoke_training.statistics import baseline as baselines
from smoke_training.statistics.baseline import RunBaseline

RUN_ID = "trainstack.run_id"
STACK = "trainstack.stack"
REGRESSION = "trainstack.regression"
# These three let a later run find its baseline in one search.
ACCEPTED = "trainstack.accepted"
FINGERPRINT = "trainstack.fingerprint"
BASELINE = "trainstack.baseline"
TEXT_LIMIT = 5000  # characters; MLflow accepts 8000 for a tag and 6000 for a param
BASELINE_LIMIT = 8000

Result = Mapping[str, Any]
Point = tuple[str, object, int]


def run_name(result: Result) -> str:
    """Return a name that users recognize in a list."""
    return f"{result['plan']['stack']}-{result['verdict'].lower()}-{result['run_id'][:8]}"


def tags(result: Result) -> dict[str, str]:
    """Return mandatory tags; an unknown value is the text `unknown`, so that no tag is missing."""
    plan = result["plan"]
    wanted = {
        **{key: plan[key] for key in ("owner", "team", "task", "dataset")},
        "status": result["verdict"],
        "mlflow.source.type": "JOB",
        "mlflow.source.git.commit": plan["git_sha"],
        "mlflow.note.content": result["headline"],
        STACK: plan["stack"],
        "trainstack.env": plan["stack"],
        **{f"trainstack.{key}": plan.get(key) for key in _PLANNED},
        "trainstack.partial": _yes(result["partial"]),
        "trainstack.image_digest": plan["image"],
        "trainstack.code_sha256": result["fingerprint"]["code_sha256"],
        "trainstack.schema_version": result["schema"],
        "trainstack.verdict": result["verdict"],
        REGRESSION: _yes(result["regression"]),
        "trainstack.regressed": ", ".join(result["regressed"]) or "none",
        RUN_ID: result["run_id"],
    }
    offered = accepted.offered(result)
    found = {} if offered is None else baseline_tags(offered)
    mark = _yes(bool(found) and result["baseline"]["accepted"])
    return {**_texts(wanted), ACCEPTED: mark, **found}


_PLANNED = (
    "profile", "depth", "cloud", "region", "instance_type", "nodes", "gpus_per_node", "fabric", "git_sha",
    "deploy_id", "owner", "cost_center",
)  # fmt: skip


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    return {key: "unknown" if value is None else str(value)[:TEXT_LIMIT] for key, value in values.items()}


def baseline_tags(known: RunBaseline) -> dict[str, str]:
    """Return the tags by which later runs find a baseline; none where it is too long for a tag."""
    text = json.dumps(baselines.render(known), separators=(",", ":"))
    return {FINGERPRINT: known.fingerprint.digest(), BASELINE: text} if len(text) <= BASELINE_LIMIT else {}


def params(result: Result, found: Evidence) -> dict[str, str]:
    """Return hyper-parameters, versions, seeds, sizes and thresholds, each threshold with its source."""
    plan, fingerprint = result["plan"], result["fingerprint"]
    known = result["comparable"]["fingerprint"] or {}
    cluster = result["cluster"]
    versions = ("torch", "python", "backend", "nccl", "kernel", "env_sha256", "code_sha256")
    wanted: dict[str, object] = {
        "world_size": plan["nodes"] * cluster["ranks_per_node"],
        "ranks_per_node": cluster["ranks_per_node"],
        "device": cluster["device"],
        **{key: plan.get(key) for key in ("depth", "seed", "image")},
        **{key: fingerprint[key] for key in versions},
        "driver": known.get("driver"),
        "plugin": fingerprint.get("plugin"),
        "resume.steps": RESUME_STEPS,
        "resume.checkpoint_every": CHECKPOINT_EVERY,
        "regression.limit": f"{baselines.LIMIT} (whole interval at one-sided 1e-4, rule of regression)",
        **_thresholds(result),
    }
    if (training := found.of(Training)) is not None:
        for key in ("parameters", "gradient_bytes", "tokens_per_step"):
            wanted[f"model.{key}"] = getattr(training, key)
    if (sweep := sweep_of(found, ALL_REDUCE)) is not None:
        wanted["sweep.sizes_bytes"] = json.dumps(sweep.sizes)
    return _texts(wanted)


def _thresholds(result: Result) -> dict[str, str]:
    found = {}
    for check in result["checks"]:
        expected = check["expected"]
        limit = expected and (expected["value"] if expected["floor"] is None else expected["floor"])
        if limit is not None:
            found[f"threshold.{check['id']}"] = f"{limit:g} ({expected['kind']}: {expected['source']})"
        if check["zone"] is not None:
            low, high = check["zone"]
            found[f"zone.{check['id']}"] = f"{low:g} .. {high:g} (indifference)"
    return found


def metrics(result: Result, found: Evidence, at_ms: int) -> list[MetricPoint]:
    """Per-step series and one point per check; null figures are omitted; the result has their reasons.

    All but the nodes' own samples carry one timestamp, so that recording twice logs the same points.
    """
    points: list[Point] = [("duration_s", result["duration_s"], 0)]
    if (reference := found.of(ReferenceRun)) is not None:
        points += [("loss", loss, step) for step, loss in enumerate(reference.losses, 1)]
    if (training := found.of(Training)) is not None:
        slowest = [max(column) for column in zip(*training.step, strict=True)]
        points += [("step_time_s", seconds, step) for step, seconds in enumerate(slowest, 1)]
    for check in result["checks"]:
        points += _of_check(check)
    points += [(f"resources.{key}", value, 0) for key, value in result["resources"].items()]
    points.append(("cost.estimated_usd", result["cost"]["estimated_usd"], 0))
    logged = [
        MetricPoint(key, float(value), step, at_ms)
        for key, value, step in points
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    ]
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


def _of_node(line: System) -> Iterator[MetricPoint]:
    """Yield one node's samples in MLflow's own key convention."""
    for step, (at_ms, values) in enumerate(zip(line.at_ms, line.values, strict=True)):
        for name, value in zip(line.names, values, strict=True):
            if value is not None and math.isfinite(value):
                yield MetricPoint(f"system/node_{line.node}/{name}", value, step, at_ms)


def _yes(value: bool | None) -> str:
    return "unknown" if value is None else str(value).lower()
