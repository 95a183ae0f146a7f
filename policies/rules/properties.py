"""Access to properties whose format differs between versions of a type."""

from collections.abc import Iterator, Mapping
from typing import Any

from policies.resource import PartlyKnown


def raw(holder: Mapping[str, Any], key: str) -> Any:
    """The value of a key, also an unknown one, to resolve its reference."""
    return dict.get(holder, key) if isinstance(holder, PartlyKnown) else holder.get(key)


def each(holder: Any, *keys: str, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, object) below the keys; each step may be an object, a list of objects, or absent."""
    if not keys:
        yield path, holder
        return
    value = holder.get(keys[0]) if isinstance(holder, dict) else None
    below = f"{path}.{keys[0]}" if path else keys[0]
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from each(item, *keys[1:], path=f"{below}[{index}]")
    elif isinstance(value, dict):
        yield from each(value, *keys[1:], path=below)


def is_true(value: Any) -> bool:
    """Return whether a boolean is true; launch templates write it as a string."""
    return str(value).lower() == "true"
