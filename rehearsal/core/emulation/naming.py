"""Automatic names, which a provider uses when the program gives none."""

import re

from rehearsal.core.emulation.table import Row
from rehearsal.core.emulation.templates import draw
from rehearsal.core.model import Call, CheckFailure, Properties
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


def named(row: Row, call: Call, old: Properties | None, inputs: Properties) -> CheckFailure | None:
    """Give inputs an automatic name where they have none; returns the failure of the name, or None.

    A name beside the prefix of one is refused, as by all 77 types of the AWS provider v5.100.0 with both
    (`ConflictsWith`) and by `google_compute_instance_template`.
    """
    prefix = next((one for one in (f"{row.name}Prefix", "namePrefix") if inputs.get(one)), None)
    if prefix and inputs.get(row.name):
        return CheckFailure(row.name, f"conflicts with {prefix}")
    try:
        name = auto_name(row, call.name, call.random_seed, old, inputs)
    except ValueError as error:
        return CheckFailure(row.name, f"could not make instance of '{call.type}': {error}")
    inputs.update({} if name is None else {row.name: name})
    return None


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
