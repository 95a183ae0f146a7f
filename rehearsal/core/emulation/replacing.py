"""Changes of a resource that force its replacement."""

import ipaddress
from typing import Any

from rehearsal.core.emulation.table import Row
from rehearsal.core.model import Properties
from rehearsal.core.properties import at, head


def replacing(row: Row, path: str, old: Properties, new: Properties) -> bool:
    """Return whether the change at `path` from `old` to `new` forces a replacement."""
    if row.replaces(path):
        return True
    if path in row.replace_unset and at(new, path) is None:
        return True
    if path in (*row.replace_lower, *row.changes.replace_lower) and _shrinks(at(old, path), at(new, path)):
        return True
    condition = row.replace_if.get(head(path))
    if condition is None:
        return False
    value = new.get(condition["property"], row.defaults.get(condition["property"]))
    return value in condition["of"] if "of" in condition else value not in condition["unless"]


def _shrinks(old: Any, new: Any) -> bool:
    """Return whether a number or version decreases, or an address range no longer contains the old one."""
    if isinstance(old, int | float) and isinstance(new, int | float):
        return new < old
    if not isinstance(old, str) or not isinstance(new, str):
        return False
    return not _holds(new, old) if "/" in new else _parts(new) < _parts(old)


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def _holds(outer: str, inner: str) -> bool:
    try:
        wide, narrow = ipaddress.IPv4Network(outer), ipaddress.IPv4Network(inner)
    except ValueError:
        return False
    return narrow.subnet_of(wide)
