"""Validations of a stack: verdict, scaling, bandwidth against references, step time per rank (pure)."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainstack.dossier.facts import UNREAD, StackFacts, ValidationResult

Result = Mapping[str, Any]
_COLLECTIVES = "collective."
_PHASES = ("data", "compute", "exposed", "checkpoint", "other")


def document(facts: StackFacts) -> dict[str, Any]:
    """The last validation of each pool. `state`: passed, failed, running, never, unknown."""
    gates = {one.pool: one for one in facts.gates}
    results = {one.pool: one for one in facts.results}
    wanted = facts.loaded.spec.validated if facts.loaded else {}
    names = dict.fromkeys([*wanted, *gates, *results])
    pools = [_pool(name, gates.get(name), results.get(name)) for name in names]
    if facts.state == "unknown":
        pools = [{**one, "state": "unknown", "read_error": UNREAD} for one in pools]
    return {
        "verdict": "unknown" if facts.state == "unknown" else _verdict([one["state"] for one in pools]),
        "passed": sum(one["state"] == "passed" for one in pools),
        "pools": pools,
    }


def _verdict(states: Sequence[str]) -> str:
    """The state of all pools, or `partly`."""
    for state in ("failed", "running"):
        if state in states:
            return state
    if not states or {*states} == {"never"}:
        return "never"
    return "partly" if "never" in states else "passed"


def _pool(name: str, gate: Any, found: ValidationResult | None) -> dict[str, Any]:
    result = found.result if found else None
    state = gate.state if gate else "passed" if found else "never"
    made: dict[str, Any] = {
        "pool": name,
        "state": state,
        "reason": gate.reason if gate else "",
        "ended": f"{gate.since:%Y-%m-%dT%H:%M:%SZ}" if gate and gate.since else None,
        "uri": found.uri if found else "",
        "read_error": found.error if found else "",
        "result": None,
    }
    if result is not None:
        try:
            made["result"] = _result(result)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            made["read_error"] = f"it is not the result of a validation: {error}"
    return made


def _result(result: Result) -> dict[str, Any]:
    checks = {one["id"]: one for one in result["checks"]}
    cluster = result["cluster"]
    statuses = [one["status"] for one in result["checks"]]
    return {
        "verdict": result["verdict"],
        "headline": result["headline"],
        "started": _second(result["started"]),
        "duration_s": result["duration_s"],
        "device": cluster["device"],
        "nodes": cluster["nodes"],
        "ranks": len(cluster["ranks"]),
        "instance_type": cluster["instance_type"],
        "passed": statuses.count("PASS"),
        "failed": statuses.count("FAIL") + statuses.count("ERROR"),
        "inconclusive": statuses.count("INCONCLUSIVE"),
        "not_judged": statuses.count("SKIPPED"),
        "scaling": _figure(checks.get("training.scaling_efficiency")),
        "straggler": _figure(checks.get("training.straggler")),
        "recovery": _figure(checks.get("resume.recovery")),
        "bandwidth": [*_bandwidth(checks)],
        "ranks_steps": _steps(checks.get("training.decomposition"), checks.get("training.straggler")),
        "checks": [
            {"id": one["id"], "status": one["status"], "message": one["message"]} for one in result["checks"]
        ],
        "notes": [*result["notes"]],
    }


def _figure(check: Result | None) -> dict[str, Any] | None:
    measured = (check or {}).get("measured")
    if not check or not measured:
        return None
    expected = check.get("expected") or {}
    return {
        "status": check["status"],
        "value": measured["value"],
        "unit": measured["unit"],
        "ci": measured["ci"],
        "samples": measured["n"],
        "expected": expected.get("value"),
        "limit": expected.get("floor"),
        "message": check["message"],
    }


def _bandwidth(checks: Mapping[str, Result]) -> Iterator[dict[str, Any]]:
    """Bus bandwidth by message size of each collective, with the best reference that is known."""
    for key, check in checks.items():
        measured = check.get("measured")
        if not key.startswith(_COLLECTIVES) or not measured or "sweep" not in measured["detail"]:
            continue
        known = [one for one in check["references"] if one["value"] is not None]
        reasons = list(dict.fromkeys(one["reason"] for one in check["references"] if one["reason"]))
        yield {
            "collective": measured["detail"]["collective"].replace("_", "-"),
            "status": check["status"],
            "largest_gb_s": measured["value"],
            "ci": measured["ci"],
            "sweep": [
                {"size_bytes": one["size_bytes"], "gb_s": one["busbw_gb_s"], "seconds": one["seconds"]}
                for one in measured["detail"]["sweep"]
            ],
            "references": [
                {"kind": one["kind"], "gb_s": one["value"], "source": one["source"]} for one in known
            ],
            "no_reference": "" if known else "; ".join(reasons),
        }


def _steps(decomposed: Result | None, straggler: Result | None) -> list[dict[str, Any]]:
    """Seconds of a step by rank and phase, with the rank's slowdown against its peers."""
    rows = ((decomposed or {}).get("measured") or {}).get("detail", {}).get("ranks", [])
    peers = ((straggler or {}).get("measured") or {}).get("detail", {}).get("ranks", [])
    slower = {one["rank"]: one["slowdown"] for one in peers}
    return [
        {
            "rank": one["rank"],
            "step_s": one["step_s"],
            **{f"{phase}_s": one[phase] for phase in _PHASES},
            "slowdown": slower.get(one["rank"]),
        }
        for one in rows
    ]


def _second(moment: str) -> str:
    """A time of a result without its fraction."""
    return f"{datetime.datetime.fromisoformat(moment).astimezone(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
