"""`trainstack rehearse drift` and `delete`: change resources outside of their program."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infra.errors import Problem, UserError
from rehearsal.control import ControlError
from rehearsal.projects import homes
from rehearsal.projects.project import read

_NEXT = "`pulumi refresh` and `pulumi up --refresh` show it"


def change(urn: str, assignments: Sequence[str], folder: Path | None) -> str:
    """Set properties by path; values are JSON where they parse as such, else text. Raises UserError."""
    values: dict[str, Any] = {}
    problems = []
    for text in assignments:
        path, separator, value = text.partition("=")
        if not separator or not path:
            rule, fix = "is not an assignment", "Write path=value."
            problems.append(Problem("KEY=VALUE", text, rule, fix, code="drift-not-an-assignment"))
            continue
        values[path] = _value(value)
    if problems:
        raise UserError(problems)
    answer = _request(urn, values, folder)
    return f"changed {answer['type']} {answer['id']}: {', '.join(values)}; {_NEXT}"


def delete(urn: str, folder: Path | None) -> str:
    """Delete, as the service would. Raises UserError with its refusal."""
    answer = _request(urn, None, folder)
    return f"deleted {answer['type']} {answer['id']}; {_NEXT}"


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _request(urn: str, values: Mapping[str, Any] | None, folder: Path | None) -> dict[str, str]:
    home = homes.of_project(read(folder)) if folder else homes.of_checkout()
    try:
        return home.drift(urn, values)
    except ControlError as error:
        fix = "The names are in `pulumi stack --show-urns`."
        rule = str(error).rstrip(".")
        code = "resource-not-found" if rule.startswith("NotFound: ") else "drift-refused"
        raise UserError([Problem("URN", urn, rule.removeprefix("NotFound: "), fix, code=code)]) from error
