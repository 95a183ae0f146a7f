"""Merge by key of mappings on one line, such as `{machine: p5.48xlarge, nodes: 2}`."""

from dataclasses import dataclass
from typing import Any

import yaml
from yaml.error import YAMLError
from yaml.nodes import MappingNode, Node

from trainstack.stamp.merge.tree import LOADER, UnsupportedError, meaning, pairs


@dataclass(frozen=True)
class _Pair:
    text: str
    """Key and value."""
    value: str
    node: Node


def merged_flow(base: str, yours: str, template: str) -> str | None:
    """The merged mapping, in the client's order; None for a conflict, or where one is no such mapping."""
    try:
        old, mine, new = (_pairs(text) for text in (base, yours, template))
    except (UnsupportedError, YAMLError, ValueError):
        return None
    found: dict[str, str] = {}
    for name, pair in mine.items():
        text = _merged(old.get(name), pair, new.get(name))
        if text is None:
            return None
        if text:
            found[name] = text
    above: str | None = None
    for name, pair in new.items():
        if name not in found and name not in old:
            names = [*found]
            at = names.index(above) + 1 if above else 0
            items = [*found.items()]
            found = dict([*items[:at], (name, pair.text), *items[at:]])
        above = name if name in found else above
    return f"{{{', '.join(found.values())}}}"


def _merged(old: _Pair | None, mine: _Pair, new: _Pair | None) -> str | None:
    """The text of a pair; empty where it goes."""
    values: list[Any] = [meaning(one.node) if one else None for one in (old, mine, new)]
    if new is None:
        return "" if old and values[0] == values[1] else mine.text
    if values[2] in (values[0], values[1]):
        return mine.text
    if old and values[1] == values[0]:
        return new.text
    inner = merged_flow(old.value if old else "{}", mine.value, new.value)
    return None if inner is None else mine.text.removesuffix(mine.value) + inner


def _pairs(text: str) -> dict[str, _Pair]:
    node = yaml.compose(text, Loader=LOADER)
    if not isinstance(node, MappingNode) or not node.flow_style or "#" in text:
        raise UnsupportedError("no mapping on one line")
    return {
        name: _Pair(
            text[key.start_mark.index : value.end_mark.index],
            text[value.start_mark.index : value.end_mark.index],
            value,
        )
        for name, key, value in pairs(node)
    }
