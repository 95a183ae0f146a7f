"""Errors of lookups in the catalog."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

Value = TypeVar("Value")


class UnknownFactError(LookupError):
    """No row has this key; the message lists the nearest ones."""

    def __init__(self, kind: str, key: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(key, names, n=5, cutoff=0.4) or names[:5]
        self.kind, self.key, self.nearest = kind, key, tuple(near)
        super().__init__(f"no {kind} {key!r} in the catalog; nearest: {', '.join(near)}")


def found(rows: Mapping[str, Value], kind: str, name: str) -> Value:
    """The row with this key. Raises UnknownFactError."""
    try:
        return rows[name]
    except KeyError:
        raise UnknownFactError(kind, name, rows) from None
