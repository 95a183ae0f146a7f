"""The whole result for a program: every outcome, and the rules behind them. Schema `trainstack.audit/1`."""

import json
from dataclasses import asdict
from typing import Any

from policies.audit import Audit
from policies.evaluate import Outcome

SCHEMA = "trainstack.audit/1"


def document(audit: Audit) -> str:
    """The result as a JSON text; an outcome without a resource is about the stack."""
    rules = {one.rule.id: one.rule for one in audit.outcomes}
    return json.dumps(
        {
            "schema": SCHEMA,
            "source": audit.source,
            "exit_code": int(audit.code),
            "resources": audit.resources,
            "rules": {
                key: {
                    "severity": rule.severity,
                    "scope": rule.scope,
                    "title": rule.title,
                    "references": list(rule.references),
                }
                for key, rule in sorted(rules.items())
            },
            "outcomes": [_row(one) for one in audit.outcomes],
            "advice": list(audit.advice),
        },
        indent=1,
    )


def _row(outcome: Outcome) -> dict[str, Any]:
    about = outcome.resource
    row: dict[str, Any] = {"rule": outcome.rule.id, "result": outcome.result}
    if about is not None:
        row |= {"urn": about.urn, "kind": about.kind, "name": about.name}
    given = {"message": outcome.message, "path": outcome.path, "fix": outcome.fix}
    if outcome.advisory:
        row["advisory"] = True
    if outcome.waiver is not None:
        waiver = asdict(outcome.waiver)
        row["waiver"] = {**waiver, **{day: f"{waiver[day]}" for day in ("created", "expires")}}
    return row | {key: value for key, value in given.items() if value}
