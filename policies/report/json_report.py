"""JSON report with all outcomes and rules, schema `trainstack.audit/1`."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from policies.audit import Audit
from policies.baseline import SCHEMA
from policies.evaluate import RuleOutcome
from policies.frameworks.framework import by_rule, frameworks

if TYPE_CHECKING:
    from policies.waivers.waiver import Waiver


def document(audit: Audit) -> str:
    """The report as JSON; an outcome without a resource concerns the stack."""
    rules = {one.rule.id: one.rule for one in audit.outcomes}
    controls = by_rule(frameworks(rules))
    resolved = {} if audit.resolved is None else {"resolved": [asdict(one) for one in audit.resolved]}
    return json.dumps(
        {
            "schema": SCHEMA,
            "source": audit.source,
            "stacks": sorted(audit.stacks),
            "exit_code": int(audit.code),
            "resources": audit.resources,
            "rules": {
                key: {
                    "severity": rule.severity,
                    "scope": rule.scope,
                    "title": rule.title,
                    "references": list(rule.references),
                    "controls": [
                        {"framework": one.framework, "control": one.control, "status": one.status}
                        for one in controls.get(key, ())
                    ],
                }
                for key, rule in sorted(rules.items())
            },
            "outcomes": [row(one) for one in audit.outcomes],
            "advice": list(audit.advice),
            **resolved,
            **({} if audit.differences is None else {"differences": differences(audit)}),
        },
        indent=1,
    )


def differences(audit: Audit) -> list[dict[str, str]]:
    """Differences between an account and its state, as objects."""
    return [
        {
            "what": one.what,
            "urn": one.resource.urn,
            "kind": one.resource.kind,
            "id": str(one.resource.id),
            "message": one.message,
            **({"path": one.path} if one.path else {}),
        }
        for one in audit.differences or ()
    ]


def row(outcome: RuleOutcome) -> dict[str, Any]:
    """An outcome as an object."""
    about = outcome.resource
    made: dict[str, Any] = {"rule": outcome.rule.id, "result": outcome.result}
    if about is not None:
        made |= {"urn": about.urn, "kind": about.kind, "name": about.name}
    given = {"message": outcome.message, "path": outcome.path, "fix": outcome.fix}
    made |= {key: True for key in ("advisory", "known") if getattr(outcome, key)}
    if outcome.waiver is not None:
        made["waiver"] = waiver(outcome.waiver)
    return made | {key: value for key, value in given.items() if value}


def waiver(given: "Waiver") -> dict[str, Any]:
    """A waiver as an object."""
    made = asdict(given)
    return {**made, **{day: f"{made[day]}" for day in ("created", "expires")}}
