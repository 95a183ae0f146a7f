"""Automatic names, which a provider uses when the program gives none."""

import re

from rehearsal.core.emulation.table import Row
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Properties
from rehearsal.core.properties import at

# How many random characters follow the logical name; the real providers use seven.
_SUFFIX = 7


def auto_name(row: Row, logical: str, seed: bytes, old: Properties | None, new: Properties) -> str | None:
    """An automatic name, or None when the program gives one; on updates, an automatic name is kept.

    It is kept under another logical name, too, which an alias can give (pulumi-terraform-bridge
    pkg/tfbridge/schema.go `applyDefaults`, `useOldDefault`).
    Raises ValueError with the provider's message for a name that is too long: it shortens no name
    (pulumi-terraform-bridge pkg/tfbridge/names.go `FromName`, pulumi sdk/go/common/resource/resource_id.go
    `NewUniqueName`).
    """
    if not row.name or at(new, row.name) is not None:
        return None
    if row.name_plain:
        return logical
    given = new.get(f"{row.name}Prefix", new.get("namePrefix"))
    start = given[: row.name_length - _SUFFIX] if isinstance(given, str) else _start(row, logical)
    if len(start) + _SUFFIX > row.name_length:
        longest = f"longer than maximum length {row.name_length}"
        raise ValueError(f"name '{start}' plus {_SUFFIX} random chars is {longest}")
    before = at(old, row.name) if old else None
    if isinstance(before, str) and _is_drawn(start if isinstance(given, str) else "", before):
        return before
    return start + draw(seed.hex() or start, _SUFFIX)


def was_automatic(name: str) -> bool:
    """Return whether a physical name looks like one of `auto_name` without a given prefix."""
    return _is_drawn("", name)


def _start(row: Row, logical: str) -> str:
    prefix = f"{row.name_prefix}{logical}"
    if row.name_lower:
        prefix = re.sub(r"[^a-z0-9-]", "-", prefix.lower())
    return f"{prefix}-"


def _is_drawn(start: str, name: str) -> bool:
    form = re.escape(start) if start else ".+-"
    return re.fullmatch(rf"{form}[0-9a-f]{{{_SUFFIX}}}", name) is not None
