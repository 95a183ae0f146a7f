"""Reads a file of waivers, or says everything that is wrong with it: it is never read in part."""

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from infra.errors import Problem, UserError
from policies import yaml_file
from policies.catalogue import Rule
from policies.waivers.waiver import APPROVERS, MOST_DAYS, Waiver

_KEY = "waivers"
_FIX = "docs/how-to/waivers.md has an example of each field."
_WAIVERS = TypeAdapter(tuple[Waiver, ...])


def read(path: Path, rules: Mapping[str, Rule], today: datetime.date) -> tuple[Waiver, ...]:
    """The waivers in a file. Raises UserError with all its faults; `rules` are those that can be waived."""
    rows = yaml_file.load(path, frozenset({_KEY}), _FIX).get(_KEY)
    try:
        found = _WAIVERS.validate_python(rows)
    except ValidationError as error:
        raise yaml_file.faults(path, _KEY, error, _FIX) from None
    problems = [
        Problem(f"{path}: {_KEY}[{index}].{key}", value, rule, fix)
        for index, waiver in enumerate(found)
        for key, value, rule, fix in _faults(waiver, rules, today)
    ]
    if problems:
        raise UserError(problems)
    return found


def _faults(
    waiver: Waiver, rules: Mapping[str, Rule], today: datetime.date
) -> Iterator[tuple[str, object, str, str]]:
    """(field, value, rule, fix) of everything that makes it no waiver."""
    for name in ("owner", "reason", "ticket", "compensating_control"):
        if not getattr(waiver, name).strip():
            yield name, getattr(waiver, name), "must not be empty", "An auditor asks for it."
    if waiver.resource.is_wide:
        fix = "Name a URN, an ARN, tags, or the stack: a rule that nobody wants is switched off, not waived."
        yield "resource", None, "fits every resource", fix
    rule = rules.get(waiver.rule)
    if rule is None:
        yield (
            "rule",
            waiver.rule,
            "is no rule of the policy pack",
            "docs/reference/policies.md lists all.",
        )
        return
    named = {name.strip() for name in waiver.approvers if name.strip()} - {waiver.owner.strip()}
    needed = APPROVERS[rule.severity]
    if len(named) < needed:
        said = f"a waiver of a {rule.severity} rule needs {needed} besides its owner"
        yield "approvers", list(waiver.approvers), said, "Have it approved."
    if waiver.created > today:
        yield "created", f"{waiver.created}", "lies in the future", "Write the day on which it was approved."
    last = waiver.created + datetime.timedelta(days=MOST_DAYS[rule.severity])
    if not waiver.created <= waiver.expires <= last:
        said = f"must lie within {MOST_DAYS[rule.severity]} days of its creation for a {rule.severity} rule"
        yield "expires", f"{waiver.expires}", said, f"At the latest: {last}."
