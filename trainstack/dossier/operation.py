"""Operation of a stack: time of a deploy, versions behind, drift, what no hardware has tested (pure)."""

from collections.abc import Iterator, Mapping
from typing import Any

from infra.catalog.durations import durations
from trainstack.dossier.architecture.parts import name_of, of_type
from trainstack.dossier.facts import UNREAD, Missing, StackFacts
from trainstack.dossier.money import pools_of
from trainstack.forecast import forecast


def deploy_document(facts: StackFacts) -> dict[str, Any]:
    """Seconds to create the stack in the real cloud, with the critical path."""
    if not facts.resources:
        return {
            "known": False,
            "why": UNREAD if facts.state == "unknown" else facts.why or "the stack has no resources",
        }
    expected = forecast(facts.resources, durations())
    return {
        "known": True,
        "why": "",
        "shortest_s": expected.shortest,
        "expected_s": expected.expected.seconds,
        "longest_s": expected.longest,
        "path": [
            {
                "name": name_of(step.key, facts.stack),
                "type": of_type(step.key).rpartition(":")[2],
                "seconds": step.seconds,
            }
            for step in expected.expected.steps
            if step.seconds
        ],
        "kinds_without_duration": len(expected.unknown),
        "unknown": [*expected.unknown],
    }


def versions_document(facts: StackFacts) -> dict[str, Any]:
    """Pinned versions against the newest ones."""
    rows = facts.versions
    if isinstance(rows, Missing):
        return {"known": False, "why": rows.why}
    pins = [
        {
            "kind": row.pin.kind,
            "name": row.pin.name,
            "pinned": row.pin.version,
            "newest": row.newest,
            "behind": row.is_newer,
            "steps": [*row.steps],
            "drains": row.pin.drains if row.is_newer else "",
            "error": "" if row.error is None else str(row.error),
        }
        for row in rows
    ]
    return {
        "known": True,
        "why": "",
        "behind": sum(bool(one["behind"]) for one in pins),
        "unknown": sum(one["newest"] is None for one in pins),
        "pins": pins,
    }


def drift_document(facts: StackFacts) -> dict[str, Any]:
    """Resources that differ from the state."""
    found = facts.drift
    if isinstance(found, Missing):
        return {"known": False, "why": found.why}
    return {
        "known": True,
        "why": "",
        "differences": [
            {
                "operation": "missing" if one.operation == "delete" else "changed",
                "type": one.type.rpartition(":")[2],
                "name": one.name.removeprefix(f"{facts.stack}-"),
                "properties": [*one.changed],
            }
            for one in found
        ],
    }


def untested_document(facts: StackFacts, validation: Mapping[str, Any]) -> list[dict[str, str]]:
    """Subjects that no run on the hardware of the stack has shown, with the reason."""
    return [{"subject": subject, "why": why} for subject, why in _untested(facts, validation)]


def _untested(facts: StackFacts, validation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if facts.rehearsed:
        yield "cloud", "The clouds are emulated: no service of a cloud has run this stack."
    for pool in validation["pools"]:
        result, name = pool["result"], f"pool {pool['pool']}"
        if pool["state"] == "never":
            yield name, "Its validation has never run."
        elif result is None:
            yield (
                name,
                f"The result of its validation cannot be read: {pool['read_error'] or 'it has not ended'}.",
            )
        else:
            if result["device"] == "cpu":
                yield (
                    name,
                    "The training run used processors: GPUs and the network between them are untested.",
                )
            for check in result["checks"]:
                if check["status"] == "SKIPPED" and check["message"].startswith(
                    ("Not measured", "Not judged")
                ):
                    yield f"{name}, {check['id']}", check["message"]
    if facts.loaded:
        validated = {*facts.loaded.spec.validated}
        for pool in pools_of(facts.loaded.spec):
            if pool.name not in validated:
                yield f"pool {pool.name}", "No validation is configured for it."
