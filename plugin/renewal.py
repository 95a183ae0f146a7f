"""Writes the schema and its page again; refuses changes that break programs and have no note.

Run as a module after a change of a component's arguments or outputs: `python -m plugin.renewal`.
"""

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.errors import Problem, UserError
from plugin import documentation, schema

NOTES = Path(__file__).with_name("changes.toml")
"""Notes of changes that break programs: path in the schema -> what users must do, with the version."""
_PARTS = {"inputProperties": "requiredInputs", "properties": "required"}


@dataclass(frozen=True)
class Change:
    """A change that breaks programs; `path` is such as `AwsBudget.inputProperties.alertEmails`."""

    path: str
    before: object
    rule: str


def breaking(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Changes between two schemas after which a program may no longer build or run."""
    for kind in ("resources", "types"):
        for token, before in old[kind].items():
            name, after = token.rpartition(":")[2], new[kind].get(token)
            if after is None:
                yield Change(name, None, "was removed")
                continue
            for part, required in _PARTS.items():
                given = part == "inputProperties" or kind == "types"
                yield from _properties(f"{name}.{part}", before, after, part, required, given=given)


def _properties(
    path: str, old: Mapping[str, Any], new: Mapping[str, Any], part: str, required: str, *, given: bool
) -> Iterator[Change]:
    """Changes of properties that programs give (`given`: a new requirement breaks them) or read."""
    before, after = old.get(part, {}), new.get(part, {})
    asked, asks = set(old.get(required, ())), set(new.get(required, ()))
    for name, found in before.items():
        if name not in after:
            yield Change(f"{path}.{name}", _type(found), "was removed")
        elif _type(after[name]) != _type(found):
            yield Change(f"{path}.{name}", _type(found), f"became {_type(after[name])}")
        elif given and name in asks - asked:
            yield Change(f"{path}.{name}", "optional", "became required")
        elif not given and name in asked - asks:
            yield Change(f"{path}.{name}", "always there", "became optional")
    for name in (asks - asked) - before.keys() if given else ():
        yield Change(f"{path}.{name}", "absent", "is new and required")


def _type(found: Mapping[str, Any]) -> str:
    return json.dumps({key: value for key, value in found.items() if key != "description"}, sort_keys=True)


def check(old: Mapping[str, Any], new: Mapping[str, Any], notes: Mapping[str, str]) -> None:
    """Raise UserError for every breaking change without a note."""
    fix = (
        f"Keep it, or add its note to {NOTES.parent.name}/{NOTES.name}: what users must do, with the version."
    )
    problems = [
        Problem(
            one.path, one.before, f"{one.rule}, which breaks programs", fix, code="schema-change-without-note"
        )
        for one in breaking(old, new)
        if one.path not in notes
    ]
    if problems:
        raise UserError(problems)


def main() -> None:
    """Check and write both files."""
    new = schema.schema()
    if schema.FILE.exists():
        check(json.loads(schema.FILE.read_text()), new, tomllib.loads(NOTES.read_text()))
    schema.FILE.write_text(schema.text())
    documentation.FILE.write_text(documentation.page(new))


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(str(error))
