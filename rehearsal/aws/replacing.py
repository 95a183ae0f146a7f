"""Which changes of a resource replace it, where that depends on more than the property."""

from typing import Any

from rehearsal.aws.table import Row
from rehearsal.core.model import Properties
from rehearsal.core.properties import at, head


def replacing(row: Row, path: str, old: Properties, new: Properties) -> bool:
    """Whether the change at `path` from `old` to `new` forces a replacement."""
    if row.replaces(path) or path == "region":
        return True
    if path in row.replace_unset and at(new, path) is None:
        return True
    if path in row.replace_lower and _lower(at(old, path), at(new, path)):
        return True
    condition = row.replace_if.get(head(path))
    if condition is None:
        return False
    value = new.get(condition["property"], row.defaults.get(condition["property"]))
    return value in condition["of"] if "of" in condition else value not in condition["unless"]


def _lower(old: Any, new: Any) -> bool:
    """Whether a number or a dotted version goes down."""
    if isinstance(old, int | float) and isinstance(new, int | float):
        return new < old
    return isinstance(old, str) and isinstance(new, str) and _parts(new) < _parts(old)


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]
