"""Rows of results.jsonl: every pair of a resource and a rule, so that nothing is left out."""

from collections.abc import Iterator
from typing import Any

from policies.audit import Audit, Inputs
from policies.catalog import PolicyRule
from policies.evaluate import SWITCHED_OFF, RuleOutcome
from policies.report.json_report import row
from policies.resource import Resource


def rows(audit: Audit, inputs: Inputs) -> Iterator[dict[str, Any]]:
    """A row per outcome, and per pair without an outcome, with the reason.

    Rows of the stack come first, then those of each resource, by URN and rule.
    """
    rules = sorted({one.rule.id: one.rule for one in audit.outcomes}.values(), key=lambda rule: rule.id)
    off = {one.rule.id for one in audit.outcomes if one.message == SWITCHED_OFF}
    found: dict[tuple[str, str], list[RuleOutcome]] = {}
    for one in audit.outcomes:
        found.setdefault((one.urn, one.rule.id), []).append(one)
    for rule in rules:
        yield from map(row, found.get(("", rule.id), ()))
    for resource in sorted(inputs.resources, key=lambda one: one.urn):
        for rule in rules:
            outcomes = found.get((resource.urn, rule.id))
            reason = SWITCHED_OFF if rule.id in off else _not_judged(rule, resource)
            skipped = [RuleOutcome(rule, resource, "not-applicable", reason)]
            yield from map(row, outcomes or skipped)


def _not_judged(rule: PolicyRule, resource: Resource) -> str:
    if rule.whole is not None and resource.kind in rule.kinds:
        return "the rule judges the stack as a whole"
    return f"the rule does not judge {resource.kind}"
