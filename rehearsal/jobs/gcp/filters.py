"""Filters of list requests (AIP-160): comparisons joined by AND."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from rehearsal.dataplane.gcp.http import ServiceError

_TERM = re.compile(r'\s*([\w.-]+|"[^"]*")\s*(=|!=|>=|<=|>|<|:)\s*("(?:[^"\\]|\\.)*"|[^\s"()]+)\s*')
_HOLDS: Mapping[str, Callable[[str, str], bool]] = {
    "=": lambda has, wanted: has == wanted,
    "!=": lambda has, wanted: has != wanted,
    ">": lambda has, wanted: has > wanted,
    ">=": lambda has, wanted: has >= wanted,
    "<": lambda has, wanted: has < wanted,
    "<=": lambda has, wanted: has <= wanted,
    ":": lambda has, wanted: wanted == "*" or wanted in has,
}
# Ascending (Cloud Logging API v2, LogSeverity).
_SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
# RFC 3339, with up to nine decimal places of a second.
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
Filter = Callable[[Mapping[str, Any]], bool]


def parsed(text: str, fields: Callable[[Mapping[str, Any], str], str | None]) -> Filter:
    """The predicate of a filter; `fields` reads a field of a row, None where it is missing.

    Raises ServiceError for filters of another form.
    """
    terms = []
    rest = text.strip()
    while rest:
        found = _TERM.match(rest)
        if found is None:
            raise ServiceError(400, f"A rehearsal supports comparisons joined by AND only, not: {rest}")
        value = json.loads(found[3]) if found[3].startswith('"') else found[3]
        name = found[1].strip('"')
        terms.append((name, found[2], _ranked(name, value)))
        rest = rest[found.end() :]
        if rest and not rest.startswith("AND"):
            raise ServiceError(400, f"A rehearsal supports comparisons joined by AND only, not: {rest}")
        rest = rest.removeprefix("AND")

    def let_through(row: Mapping[str, Any]) -> bool:
        return all(
            (has := fields(row, name)) is not None and _HOLDS[sign](_ranked(name, has), wanted)
            for name, sign, wanted in terms
        )

    return let_through


def _ranked(name: str, value: str) -> str:
    """Severities as ranks and times in one form, so that they compare as text.

    Raises ServiceError for an invalid time.
    """
    if name == "severity" and value in _SEVERITIES:
        return str(_SEVERITIES.index(value))
    if found := _MOMENT.fullmatch(value):
        try:
            second = datetime.fromisoformat(found[1] + found[3]).astimezone(UTC)
        except ValueError:
            raise ServiceError(400, f"Unparseable filter: timestamp {value} is invalid") from None
        return f"{second:%Y-%m-%dT%H:%M:%S}.{(found[2] or '').ljust(9, '0')}"
    return value
