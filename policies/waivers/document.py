"""Reads a file of waivers, or says everything that is wrong with it: it is never read in part."""

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from infra.errors import Problem, UserError
from policies.catalogue import Rule
from policies.waivers.waiver import APPROVERS, MOST_DAYS, Waiver

_KEY = "waivers"
_MOST_BYTES = 1 << 20
_FIX = "docs/waivers.md has an example of each field."
_WAIVERS = TypeAdapter(tuple[Waiver, ...])


def read(path: Path, rules: Mapping[str, Rule], today: datetime.date) -> tuple[Waiver, ...]:
    """The waivers in a file. Raises UserError with all its faults; `rules` are those that can be waived."""
    rows = _rows(path)
    try:
        found = _WAIVERS.validate_python(rows)
    except ValidationError as error:
        raise UserError(_fault(path, fault) for fault in error.errors()) from None
    problems = [
        Problem(f"{path}: {_KEY}[{index}].{key}", value, rule, fix)
        for index, waiver in enumerate(found)
        for key, value, rule, fix in _faults(waiver, rules, today)
    ]
    if problems:
        raise UserError(problems)
    return found


def _rows(path: Path) -> Any:
    try:
        content = path.read_bytes()
        if len(content) > _MOST_BYTES:
            raise UserError([Problem(str(path), None, f"is larger than {_MOST_BYTES >> 20} MiB", _FIX)])
        document = YAML(typ="safe", pure=True).load(content.decode())
    except OSError as error:
        fix = "Name a file of waivers, or none."
        raise UserError([Problem(str(path), None, f"cannot be read: {error.strerror}", fix)]) from None
    except (YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise UserError([Problem(str(path), None, f"is not valid YAML: {said}", _FIX)]) from None
    if not isinstance(document, dict) or set(document) != {_KEY} or not isinstance(document[_KEY], list):
        raise UserError(
            [Problem(str(path), None, f"must be an object with a list `{_KEY}`, nothing else", _FIX)]
        )
    return document[_KEY]


def _fault(path: Path, fault: Any) -> Problem:
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"])
    value = None if fault["type"] == "missing" else fault["input"]
    return Problem(f"{path}: {_KEY}{where}", value, fault["msg"].lower(), _FIX)


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
        yield "rule", waiver.rule, "is no rule of the policy pack", "docs/policies.md has all of them."
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
