"""Files of an evidence bundle. The same inputs, time and rules give the same bytes on every machine."""

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from policies.audit import Audit, Inputs
from policies.evaluate import Result, RuleOutcome
from policies.evidence import bill_of_materials, results
from policies.frameworks.framework import frameworks, without_control
from policies.frameworks.tally import covered
from policies.report import html_page
from policies.report.json_report import differences, waiver
from policies.resource import is_unknown
from policies.severity import SEVERITIES

SCHEMA = "trainstack.evidence/1"
MANIFEST = "manifest.sha256"
_ROOT = Path(__file__).resolve().parents[2]
_RULES = ("policies/**/*.py", "policies/**/*.toml", "infra/catalog/**/*.py", "infra/catalog/**/*.toml")
"""Files that determine an outcome, besides the inputs."""


def files(audit: Audit) -> dict[str, bytes]:
    """Content by name. The audit has its inputs."""
    inputs = audit.inputs
    assert inputs
    made = {
        "evidence.json": _json(_summary(audit, inputs)),
        "results.jsonl": b"".join(_line(row) for row in results.rows(audit, inputs)),
        "waivers.json": _json({"waivers": list(_waivers(audit, inputs))}),
        "frameworks.csv": _frameworks(audit),
        "parts.cdx.json": _json(bill_of_materials.document(audit, inputs)),
        "report.html": html_page.document(audit).encode(),
    }
    if audit.differences is not None:
        made["differences.json"] = _json({"differences": differences(audit)})
    made[MANIFEST] = manifest(made)
    return made


def manifest(files: Mapping[str, bytes]) -> bytes:
    """Digests of files, for `sha256sum --check`."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    return "".join(f"{digest}  {name}\n" for name, digest in digests.items()).encode()


def _summary(audit: Audit, inputs: Inputs) -> dict[str, Any]:
    rules = {one.rule.id: one.rule for one in audit.outcomes}
    return {
        "schema": SCHEMA,
        "at": bill_of_materials.moment(inputs),
        "source": {
            "kind": inputs.kind,
            "name": audit.source,
            "stacks": sorted(audit.stacks),
            "accounts": sorted({str(one.account) for one in inputs.resources if _named(one.account)}),
            "resources": audit.resources,
            "could_not_be_read": _plain(inputs.coverage.refused),
            "never_told": dict(sorted(inputs.coverage.unreported.items())),
        },
        "files": {what: {"sha256": digest} for what, digest in sorted(inputs.files.items())},
        "versions": {
            "trainstack": bill_of_materials.version(),
            "rules": {"count": len(rules), "sha256": _rules_digest()},
        },
        "settings": _settings(inputs),
        "enforcement": dict(sorted(inputs.judge.configuration.enforcement.items())),
        "fail_on": audit.fail_on,
        "counts": {
            "results": {one: sum(o.result == one for o in audit.outcomes) for one in get_args(Result)},
            "violations": _by_severity(audit.outcomes),
            "known": sum(one.known and one.result == "fail" for one in audit.outcomes),
            "advisory": sum(one.advisory and one.result == "fail" for one in audit.outcomes),
        },
        "baseline": None if audit.resolved is None else {"resolved": [asdict(one) for one in audit.resolved]},
        "advice": list(audit.advice),
        "verdict": {"exit_code": int(audit.code), "name": audit.code.name.lower().replace("_", " ")},
        "frameworks": [
            {
                "framework": one.key, "name": one.name, "source": one.source, "read": f"{one.read}",
                "wording": one.wording,
            }
            for one in frameworks(rules)
        ],
    }  # fmt: skip


def _named(value: Any) -> bool:
    return not is_unknown(value) and bool(value)


def _plain(refused: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    return {kind: dict(sorted(rows.items())) for kind, rows in sorted(refused.items())}


def _settings(inputs: Inputs) -> dict[str, Any]:
    settings = asdict(inputs.judge.configuration.settings)
    return {key: f"{value}" if key == "today" else value for key, value in sorted(settings.items())}


def _by_severity(outcomes: Sequence[RuleOutcome]) -> dict[str, int]:
    counts = Counter(one.rule.severity for one in outcomes if one.result == "fail")
    return {severity: counts[severity] for severity in reversed(SEVERITIES)}


def _waivers(audit: Audit, inputs: Inputs) -> Iterator[Mapping[str, Any]]:
    today = inputs.judge.configuration.settings.today
    for one in inputs.judge.waivers:
        urns = [o.urn for o in audit.outcomes if o.waiver is one]
        yield {**waiver(one), "holds": one.holds(today), "waives": sorted(urns) if one.holds(today) else []}


_COLUMNS = ("framework", "control", "control_title", "rule", "severity", "rule_title")
_COUNTS: Mapping[str, Result] = {
    "passed": "pass", "failed": "fail", "waived": "waived", "undetermined": "undetermined",
    "not_applicable": "not-applicable",
}  # fmt: skip


def _frameworks(audit: Audit) -> bytes:
    """A line per control and rule, then the rules without a control, with the reason."""
    rules = {one.rule.id: one.rule for one in audit.outcomes}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_COLUMNS, *_COUNTS, "status", "verified_by", "why"])

    def line(control: Sequence[str], rule: str, tally: Counter[Result], *status: str) -> None:
        about = (rule, rules[rule].severity, rules[rule].title)
        writer.writerow([*control, *about, *(tally[one] for one in _COUNTS.values()), *status])

    for one in frameworks(rules):
        counts = covered(audit.outcomes, one.cloud)
        for each in (each for each in one.references if each.rule in rules):
            control = (one.name, each.control, one.controls[each.control])
            line(control, each.rule, counts[each.rule], each.status, each.verified, each.why)
    counts = covered(audit.outcomes)
    for rule, why in sorted(without_control().items()):
        if rule in rules:
            line(("", "", ""), rule, counts[rule], "no control", "", why)
    return text.getvalue().encode()


def _rules_digest() -> str:
    """Digest of the files that determine an outcome, by name and content."""
    paths = sorted(path.relative_to(_ROOT).as_posix() for form in _RULES for path in _ROOT.glob(form))
    digest = hashlib.sha256()
    for path in paths:
        content = (_ROOT / path).read_bytes()
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def _line(row: Mapping[str, Any]) -> bytes:
    return (json.dumps(row, separators=(",", ":")) + "\n").encode()
