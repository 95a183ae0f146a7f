"""Changes of a resource that force its replacement."""

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any

from rehearsal.core.emulation.table import Row
from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import at, head


def replacing(row: Row, path: str, old: Properties, new: Properties) -> bool:
    """Return whether the change at `path` from `old` to `new` forces a replacement."""
    if row.replaces(path):
        return True
    if path in row.replace_unset and at(new, path) is None:
        return True
    if path in (*row.replace_lower, *row.changes.replace_lower) and _shrinks(at(old, path), at(new, path)):
        return True
    name = path if path in row.replace_if else head(path)
    condition = row.replace_if.get(name)
    if condition is None:
        return False
    value = at(new, condition["property"])
    value = at(row.defaults, condition["property"]) if value is None else value
    if not (value in condition["of"] if "of" in condition else value not in condition["unless"]):
        return False
    changes = _CHANGES.get(condition.get("change", ""))
    before, after = at(old, name), at(new, name)
    return changes is None or changes(before, after)


def _not_more(before: Any, after: Any) -> bool:
    """A list without more items; about one that is not known yet the providers decide nothing."""
    return UNKNOWN not in (after or ()) and len(after or ()) <= len(before or ())


def _not_added(before: Any, after: Any) -> bool:
    known = UNKNOWN not in (after or ())
    return _not_more(before, after) or (known and any(one not in after for one in before or ()))


def _begins_or_ends(before: Any, after: Any) -> bool:
    return UNKNOWN not in (after or ()) and bool(before) != bool(after)


def _shrinks(old: Any, new: Any) -> bool:
    """Return whether a number or version decreases, or an address range no longer contains the old one."""
    if isinstance(old, int | float) and isinstance(new, int | float):
        return new < old
    if not isinstance(old, str) or not isinstance(new, str):
        return False
    return not _holds(new, old) if "/" in new else _older(new, old)


def _older(one: str, other: str) -> bool:
    """Compare versions; the rest of `6.x` is any."""
    parts = [_parts(one), _parts(other)]
    if one.endswith(".x") or other.endswith(".x"):
        parts = [each[: min(map(len, parts))] for each in parts]
    return parts[0] < parts[1]


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def _holds(outer: str, inner: str) -> bool:
    try:
        wide, narrow = ipaddress.IPv4Network(outer), ipaddress.IPv4Network(inner)
    except ValueError:
        return False
    return narrow.subnet_of(wide)


_CHANGES: Mapping[str, Callable[[Any, Any], bool]] = {
    "not_more": _not_more,
    "not_added": _not_added,
    "begins_or_ends": _begins_or_ends,
    "lower": _shrinks,
}
"""Changes of a value that `replace_if` may name."""
