"""Every resource and every rule: the whole population, so that nobody has to ask what was left out."""

from collections.abc import Iterator
from typing import Any

from policies.audit import Audit, Inputs
from policies.catalogue import Rule
from policies.evaluate import SWITCHED_OFF, Outcome
from policies.report.outcomes import row
from policies.resource import Resource


def rows(audit: Audit, inputs: Inputs) -> Iterator[dict[str, Any]]:
    """A row for each outcome, and one for each pair of which the audit says nothing, with the reason.

    Rows about the stack come first, then those of each resource, by URN and rule.
    """
    rules = sorted({one.rule.id: one.rule for one in audit.outcomes}.values(), key=lambda rule: rule.id)
    off = {one.rule.id for one in audit.outcomes if one.message == SWITCHED_OFF}
    found: dict[tuple[str, str], list[Outcome]] = {}
    for one in audit.outcomes:
        found.setdefault((one.urn, one.rule.id), []).append(one)
    for rule in rules:
        yield from map(row, found.get(("", rule.id), ()))
    for resource in sorted(inputs.resources, key=lambda one: one.urn):
        for rule in rules:
            told = found.get((resource.urn, rule.id))
            reason = SWITCHED_OFF if rule.id in off else _not_asked(rule, resource)
            silent = [Outcome(rule, resource, "not-applicable", reason)]
            yield from map(row, told or silent)


def _not_asked(rule: Rule, resource: Resource) -> str:
    if rule.whole is not None and resource.kind in rule.kinds:
        return "the rule judges the stack as a whole"
    return f"the rule is not about {resource.kind}"
