"""The JSON Schema of a result document (pure). An incompatible change needs a new version."""

from typing import Any

from smoke_training.model import SCHEMA, Verdict

_NUMBER: dict[str, Any] = {"type": ["number", "null"]}
_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_MAYBE: dict[str, Any] = {"type": ["string", "null"]}
_VERDICT: dict[str, Any] = {"enum": [str(v) for v in Verdict]}
_PAIR: dict[str, Any] = {
    "anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}]
}


def _record(**properties: Any) -> dict[str, Any]:
    """An object that has exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"type": "null"}, schema]}


_REASON_WHEN_NULL: dict[str, Any] = {
    "if": {"properties": {"value": {"type": "null"}}},
    "then": {"properties": {"reason": _TEXT}},
}
_MEASURED = (
    _record(
        value=_NUMBER,
        unit=_TEXT,
        n={"type": "integer", "minimum": 0},
        estimator=_TEXT,
        ci=_PAIR,
        spread=_NUMBER,
        reason=_MAYBE,
        detail={"type": "object"},
    )
    | _REASON_WHEN_NULL
)
_EXPECTED = _record(value=_NUMBER, kind=_TEXT, source=_TEXT, floor=_NUMBER, reason=_MAYBE) | _REASON_WHEN_NULL
_CULPRIT = _record(
    kind=_TEXT,
    id=_TEXT,
    node=_MAYBE,
    score=_NUMBER,
    ci=_PAIR,
    cause=_TEXT,
    evidence={"type": "array", "items": _TEXT},
)
_REFERENCE = (
    _record(
        kind={"enum": ["bound", "declared", "published", "baseline"]},
        value=_NUMBER,
        unit=_MAYBE,
        ci=_PAIR,
        source=_MAYBE,
        reason=_MAYBE,
    )
    | _REASON_WHEN_NULL
)
_CHECK = _record(
    id=_TEXT,
    status=_VERDICT,
    required={"type": "boolean"},
    message=_TEXT,
    measured=_nullable(_MEASURED),
    expected=_nullable(_EXPECTED),
    zone=_PAIR,
    noise={"type": "object", "additionalProperties": _NUMBER},
    culprits={"type": "array", "items": _CULPRIT},
    next_action=_MAYBE,
    references={"type": "array", "items": _REFERENCE},
)
_FIGURE = _record(value={"type": "number"}, ci=_PAIR, n={"type": "integer", "minimum": 0}, unit=_TEXT)
_COMPARABLE = _record(
    acceptance={"type": ["object", "null"]},
    fingerprint={"type": ["object", "null"]},
    figures={"type": "object", "additionalProperties": _FIGURE},
    left_out={"type": "array", "items": _TEXT},
    reason=_MAYBE,
)
_CLUSTER = _record(
    cloud=_TEXT,
    region=_TEXT,
    instance_type=_TEXT,
    nodes={"type": "integer"},
    gpus_per_node={"type": "integer"},
    ranks_per_node={"type": "integer"},
    device=_TEXT,
    fabric=_TEXT,
    ranks={"type": "array"},
    reason=_MAYBE,
)
_FINGERPRINT = _record(
    image=_TEXT,
    torch=_MAYBE,
    backend=_MAYBE,
    nccl=_MAYBE,
    python=_TEXT,
    kernel=_TEXT,
    code_sha256=_TEXT,
    code_matches_plan={"type": "boolean"},
    git_sha=_MAYBE,
    env_sha256=_TEXT,
    seed={"type": "integer"},
    kill_schedule={"type": ["object", "null"]},
)

RESULT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Result of a distributed-training validation run",
    **_record(
        schema={"const": SCHEMA},
        run_id=_TEXT,
        started=_TEXT,
        duration_s={"type": "number", "minimum": 0},
        verdict=_VERDICT,
        exit_code={"enum": [0, 1, 2, 3, 4]},
        headline=_TEXT,
        partial={"type": "boolean"},
        regression={"type": ["boolean", "null"]},
        regression_reason=_TEXT,
        regressed={"type": "array", "items": _TEXT},
        comparable=_COMPARABLE,
        baseline=_record(accepted={"type": "boolean"}, reason=_MAYBE),
        plan={"type": "object"},
        cluster=_CLUSTER,
        fingerprint=_FINGERPRINT,
        checks={"type": "array", "items": _CHECK, "minItems": 1},
        resources=_record(
            cpu_seconds=_NUMBER, max_rss_bytes=_NUMBER, gpu_memory_bytes=_NUMBER, reason=_MAYBE
        ),
        cost=_record(estimated_usd=_NUMBER, hourly_cost_usd=_NUMBER, reason=_MAYBE),
        notes={"type": "array", "items": _TEXT},
        artifacts={"type": "array", "items": _record(name=_TEXT, sha256=_MAYBE, reason=_MAYBE)},
        mlflow=_record(synced={"type": "boolean"}, run_id=_MAYBE, reason=_MAYBE),
    ),
}
