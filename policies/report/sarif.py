"""SARIF 2.1.0 report (OASIS standard of 2020-03-27) for code scanning services."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from policies.audit import Audit
from policies.baseline import KnownFinding
from policies.catalog import PolicyRule
from policies.evaluate import RuleOutcome
from policies.frameworks.framework import ControlReference, by_rule, frameworks
from policies.report.json_report import differences
from policies.report.texts import found, of, place, printable
from policies.resource import Resource
from policies.severity import Severity

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Mapping[Severity, str] = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
# GitHub sorts by this number and names its ranges: above 9 critical, 7 to 8.9 high, 4 to 6.9 medium.
_SECURITY: Mapping[Severity, str] = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "2.0"}


def document(audit: Audit) -> str:
    """The SARIF log. Waived violations are suppressed failures; undetermined outcomes are `open`."""
    shown = of(audit, "fail", "waived", "undetermined")
    rules = sorted({one.rule.id: one.rule for one in audit.outcomes}.values(), key=lambda rule: rule.id)
    controls = by_rule(frameworks({rule.id: rule for rule in rules}))
    places = {rule.id: index for index, rule in enumerate(rules)}
    driver = {"name": "trainstack audit", "rules": [_rule(rule, controls.get(rule.id, ())) for rule in rules]}
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "results": [_result(one, places[one.rule.id], audit) for one in shown],
    }
    for one in audit.resolved or ():
        run["results"].append(_absent(one, places[one.rule], audit.source))
    if audit.differences is not None:  # no results: a service would create alerts from them
        run["properties"] = {"differences": differences(audit)}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _rule(rule: PolicyRule, controls: Sequence[ControlReference]) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.rationale},
        "help": {"text": rule.remediation},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {
            "severity": rule.severity,
            "security-severity": _SECURITY[rule.severity],
            "references": list(rule.references),
            "controls": [f"{one.label} ({one.status})" for one in controls],
        },
    }


def _result(outcome: RuleOutcome, index: int, audit: Audit) -> dict[str, Any]:
    failed = outcome.result != "undetermined"
    fix = f". {printable(outcome.fix)}" if outcome.fix else ""
    result: dict[str, Any] = {
        "ruleId": outcome.rule.id,
        "ruleIndex": index,
        "kind": "fail" if failed else "open",
        "level": _level(outcome) if failed else "none",
        "message": {"text": f"{place(outcome)}: {found(outcome)}{fix}"},
        "locations": [_location(outcome.resource, audit.source)],
        "partialFingerprints": {"outcome/v1": _fingerprint(outcome)},
    }
    if audit.resolved is not None:
        result["baselineState"] = "unchanged" if outcome.known else "new"
    if outcome.result == "waived":
        result["suppressions"] = [_suppression(outcome)]
    return result


def _level(outcome: RuleOutcome) -> str:
    return "note" if outcome.advisory else _LEVELS[outcome.rule.severity]


def _absent(known: KnownFinding, index: int, source: str) -> dict[str, Any]:
    return {
        "ruleId": known.rule,
        "ruleIndex": index,
        "kind": "pass",
        "level": "none",
        "baselineState": "absent",
        "message": {"text": printable(f"{known.urn or 'the stack'}: {known.message}")},
        "locations": [_location(None, source)],
        "partialFingerprints": {"outcome/v1": _hashed(known.rule, known.urn, known.path)},
    }


def _location(about: Resource | None, source: str) -> dict[str, Any]:
    """The resource in the judged file; services require a file."""
    made: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": quote(printable(source))}}}
    if about is not None:
        names = {"name": printable(about.name), "fullyQualifiedName": printable(about.urn)}
        made["logicalLocations"] = [{**names, "kind": "resource"}]
    return made


def _suppression(outcome: RuleOutcome) -> dict[str, Any]:
    waiver = outcome.waiver
    assert waiver
    return {
        "kind": "external",
        "status": "accepted",
        "justification": waiver.reason,
        "properties": {
            "ticket": waiver.ticket, "owner": waiver.owner, "approvers": list(waiver.approvers),
            "expires": f"{waiver.expires}",
        },
    }  # fmt: skip


def _fingerprint(outcome: RuleOutcome) -> str:
    return _hashed(outcome.rule.id, outcome.urn, outcome.path)


def _hashed(*names: str) -> str:
    parts = "\0".join(names).encode(errors="replace")
    return hashlib.sha256(parts).hexdigest()[:32]
