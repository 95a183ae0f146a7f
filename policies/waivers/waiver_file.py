"""Read a waiver file. One fault rejects the whole file; all faults are reported."""

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from infra.errors import Problem, UserError
from policies import yaml_file
from policies.catalog import PolicyRule
from policies.waivers.waiver import APPROVERS, MOST_DAYS, Waiver

_KEY = "waivers"
_FIX = "docs/how-to/waivers.md has an example of each field."
_WAIVERS = TypeAdapter(tuple[Waiver, ...])


def read(path: Path, rules: Mapping[str, PolicyRule], today: datetime.date) -> tuple[Waiver, ...]:
    """The waivers in a file. Raises UserError with all faults; `rules` are those that can be waived."""
    rows = yaml_file.load(path, frozenset({_KEY}), _FIX).get(_KEY)
    try:
        found = _WAIVERS.validate_python(rows)
    except ValidationError as error:
        raise yaml_file.faults(path, _KEY, error, _FIX) from None
    problems = [
        Problem(f"{path}: {_KEY}[{index}].{key}", value, rule, fix, code=code)
        for index, waiver in enumerate(found)
        for code, key, value, rule, fix in _faults(waiver, rules, today)
    ]
    if problems:
        raise UserError(problems)
    return found


def _faults(
    waiver: Waiver, rules: Mapping[str, PolicyRule], today: datetime.date
) -> Iterator[tuple[str, str, object, str, str]]:
    """(code, field, value, rule, fix) of each fault of a waiver."""
    for name in ("owner", "reason", "ticket", "compensating_control"):
        if not getattr(waiver, name).strip():
            value, fix = getattr(waiver, name), "Auditors require it."
            yield "waiver-field-empty", name, value, "must not be empty", fix
    if waiver.resource.is_wide:
        fix = "Name a URN, an ARN, tags, or the stack; to disable a rule, use the configuration."
        yield "waiver-matches-everything", "resource", None, "fits every resource", fix
    rule = rules.get(waiver.rule)
    if rule is None:
        message, fix = "is no rule of the policies", "docs/reference/policies.md lists all."
        yield "waiver-unknown-rule", "rule", waiver.rule, message, fix
        return
    named = {name.strip() for name in waiver.approvers if name.strip()} - {waiver.owner.strip()}
    needed = APPROVERS[rule.severity]
    if len(named) < needed:
        message = f"a waiver of a {rule.severity} rule needs {needed} besides its owner"
        yield "waiver-needs-approvers", "approvers", list(waiver.approvers), message, "Have it approved."
    if waiver.created > today:
        fix = "Write the day on which it was approved."
        yield "waiver-created-in-future", "created", f"{waiver.created}", "lies in the future", fix
    last = waiver.created + datetime.timedelta(days=MOST_DAYS[rule.severity])
    if not waiver.created <= waiver.expires <= last:
        message = (
            f"must lie within {MOST_DAYS[rule.severity]} days of its creation for a {rule.severity} rule"
        )
        yield "waiver-expiry-out-of-range", "expires", f"{waiver.expires}", message, f"At the latest: {last}."
