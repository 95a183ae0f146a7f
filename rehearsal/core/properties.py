"""Paths into property trees, and differences between trees."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties

_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_INDEX = re.compile(r"\[\d+\]")
_STEP = re.compile(r'\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\.?([^.\[]+)')


def join(path: str, name: str) -> str:
    """A property path extended by a name, quoted where the engine's path grammar requires it."""
    if not _NAME.fullmatch(name):
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        return f'{path}["{quoted}"]'
    return f"{path}.{name}" if path else name


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every scalar of a property tree with its path, such as `vpcConfig.subnetIds[1]`."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from walk(item, join(path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from walk(item, f"{path}[{index}]")
    else:
        yield path, value


def at(value: Any, path: str) -> Any:
    """The value at a path, or None."""
    for index, quoted, name in _STEP.findall(path):
        if index:
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else None
        else:
            key = name or re.sub(r"\\(.)", r"\1", quoted)
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def head(path: str) -> str:
    """The top-level property of a path."""
    index, quoted, name = _STEP.findall(path)[0]
    return str(index or name or quoted)


def steps(path: str) -> list[str | int]:
    """The keys and indices of a path."""
    found = _STEP.findall(path)
    return [int(index) if index else name or re.sub(r"\\(.)", r"\1", quoted) for index, quoted, name in found]


def each(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Known values at a path without indices, as (concrete path, value).

    The path covers every item of a list on the way; `[]` at the end stands for the items of the last one.
    """
    yield from _each(value, path.split("."), "")


def _each(value: Any, steps: list[str], here: str) -> Iterator[tuple[str, Any]]:
    if not steps:
        if known(value):
            yield here, value
        return
    name, many = steps[0].removesuffix("[]"), steps[0].endswith("[]")
    found = value.get(name) if isinstance(value, Mapping) else None
    place = join(here, name)
    if not isinstance(found, list) or not (many or steps[1:]):
        yield from () if many else _each(found, steps[1:], place)
        return
    for index, item in enumerate(found):
        yield from _each(item, steps[1:], f"{place}[{index}]")


def without_indices(path: str) -> str:
    """A property path without its list indices, the form of paths in tables."""
    return _INDEX.sub("", path)


def changed(old: Any, new: Any, path: str = "") -> list[str]:
    """The deepest paths at which two trees differ; an unknown differs from every known value."""
    if old == new:
        return []
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = [*old, *(name for name in new if name not in old)]
        return [found for name in names for found in changed(old.get(name), new.get(name), join(path, name))]
    if isinstance(old, list) and isinstance(new, list):
        size = max(len(old), len(new))
        pairs = ((_item(old, index), _item(new, index), f"{path}[{index}]") for index in range(size))
        return [found for before, after, here in pairs for found in changed(before, after, here)]
    return [path]


def within(value: Any, whole: Any) -> bool:
    """Return whether `whole` has each value of `value`; its mappings may have more, its lists may not."""
    if isinstance(value, Mapping) and isinstance(whole, Mapping):
        return all(within(item, whole.get(name)) for name, item in value.items())
    if isinstance(value, list) and isinstance(whole, list):
        return len(value) == len(whole) and all(within(*pair) for pair in zip(value, whole, strict=True))
    return value is not None and value == whole


def carried(had: Any, gave: Any, wanted: Any) -> Any:
    """`wanted` with values that the service had added to what the program `gave` before, at any depth.

    `had` are all former values. A value that the program no longer gives is removed; lists are compared item
    by item while they keep their length.
    """
    if isinstance(had, Mapping) and isinstance(wanted, Mapping):
        before = gave if isinstance(gave, Mapping) else {}
        left = {name: value for name, value in had.items() if name not in before and name not in wanted}
        dropped = {name: had.get(name) for name in before if name not in wanted}
        blocks = {
            name: carried(value, before[name], {})
            for name, value in dropped.items()
            if isinstance(value, Mapping)
        }
        given = {name: carried(had.get(name), before.get(name), value) for name, value in wanted.items()}
        return left | {name: rest for name, rest in blocks.items() if rest} | given
    if isinstance(had, list) and isinstance(wanted, list) and len(had) == len(wanted):
        items = gave if isinstance(gave, list) and len(gave) == len(had) else [None] * len(had)
        return [carried(*each) for each in zip(had, items, wanted, strict=True)]
    return wanted


def known(value: object) -> bool:
    """Return whether a value is set and known in a preview."""
    return value is not None and value is not UNKNOWN


def has_unknown(value: Any) -> bool:
    """Return whether a value has parts that are unknown in a preview."""
    return any(item is UNKNOWN for _, item in walk(value))


def without_none(properties: Properties) -> Properties:
    """The properties that are set."""
    return {name: value for name, value in properties.items() if value is not None}


def decoded(value: Any) -> Any:
    """A provider setting: the SDKs send everything that is not a string as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _item(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else None
