"""Rows that the engine passes to a policy pack for an export, and outcomes of a pack in its events."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

KEPT = ("urn", "type", "parent", "protect", "dependencies", "propertyDependencies")
Verdict = tuple[str, str, str, str]
"""Rule, URN, result, message and path; without passes."""


def rows(export: Any, properties: str) -> Iterator[dict[str, Any]]:
    """The resources with their "inputs" or "outputs", as pkg/resource/deploy/analyze_snapshot.go makes them.

    Resources of the bridge have their id among their outputs.
    """
    resources = [row for row in export["deployment"]["resources"] if not row.get("delete")]
    by_urn = {row["urn"]: row for row in resources}
    for row in resources:
        reported = {
            **{key: row[key] for key in KEPT if key in row},
            "properties": dict(row.get(properties, {})),
        }
        if properties == "outputs" and "id" in row and not row["type"].startswith("kubernetes:"):
            reported["properties"]["id"] = row["id"]
        provider = by_urn.get(row.get("provider", "").rpartition("::")[0])
        if provider:
            given = provider.get("inputs", {})
            reported["provider"] = {"urn": provider["urn"], "type": provider["type"], "properties": given}
        yield reported


def of_engine(lines: Iterable[str]) -> list[dict[str, Any]]:
    """The policy events among the engine's events, one a line."""
    events = [json.loads(line) for line in lines if line.startswith("{")]
    return [event["policyEvent"] for event in events if "policyEvent" in event]


def verdicts_of_pack(reported: Iterable[dict[str, Any]]) -> set[Verdict]:
    """Distinct outcomes that the pack reported."""
    return {_verdict(one) for one in reported if one["policyName"] != "audit"}


def _verdict(event: dict[str, Any]) -> Verdict:
    head, found, *_ = event["message"].splitlines()
    rule, _, said = head.partition(": ")
    results = {"undetermined": "undetermined", "waived": "waived"}
    urn = event["resourceUrn"]
    about = "" if urn.split("::")[2] == "pulumi:pulumi:Stack" else urn
    return rule, about, results.get(said.partition(": ")[0], "fail"), found.removeprefix("found: ")


def verdicts_of_audit(document: Any) -> set[Verdict]:
    """The same of what `trainstack audit --format json` wrote."""
    return {
        (one["rule"], one.get("urn", ""), one["result"], _found(one))
        for one in document["outcomes"]
        if one["result"] in ("fail", "waived", "undetermined")
    }


def _found(outcome: Any) -> str:
    where = f" ({outcome['path']})" if outcome.get("path") else ""
    return f"{outcome['message']}{where}"
