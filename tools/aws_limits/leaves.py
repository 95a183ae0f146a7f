"""Attributes of a resource type of a Terraform provider, and configurations that set some of them.

A provider's error about an attribute inside a set has a path that ends at the set, and SDK 2 reports one
about the fourth name of a path at any name beside it. So of the leaves that share such a place, a
configuration sets one; nor does it set leaves that exclude each other, since the provider judges the value of
neither. `lanes` splits the leaves of a type by that.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tools.provider_protocol import MANY, SET, Diagnostic, Fields, attributes, blocks, empty

Path = tuple[str, ...]
_UNWRITTEN = {("id",), ("tags",), ("tags_all",), ("timeouts",)}
_TEXTS = (["list", "string"], ["set", "string"])
_NUMBERS = (["list", "number"], ["set", "number"])
# Paths with more names are left out, and so are deep ones of large types: statements contain each other.
_DEEPEST, _MOST = 5, 400
# helper/schema/schema.go of hashicorp/terraform-plugin-sdk (validateObject, validateList) appends each step
# to the path of the block; a block is two steps, its name and an index. Go doubles the room for the steps:
# there are 8 once the third name is the fifth step, so the fourth names of a block are all written to the
# seventh, and an error has the last of them, in the random order of a map. The first three and the fifth have
# new room each.
_SURE = 3
_CROSS = re.compile(
    r"onflict|Invalid combination|Invalid Attribute Combination|Missing|required|unconfigurable|Read-Only"
    r"|Invalid or unknown key|cannot be specified|must be specified|Too (?:many|few)|Insufficient"
)


@dataclass(frozen=True)
class Leaf:
    """An attribute: `form` is text, number, bool or other, `many` whether it is a list of such values.

    `place` is the longest part of its path that an error can have.
    """

    path: Path
    form: str
    many: bool
    place: Path


def leaves(block: Fields) -> list[Leaf]:
    """The attributes that a program gives; of a large type, those near the top."""
    found: list[Leaf] = []
    for deepest in range(1, _DEEPEST + 1):
        more = [*_leaves(block, (), (), deepest)]
        if len(more) > _MOST and found:
            break
        found = more
    return found


def _leaves(block: Fields, above: Path, place: Path, deepest: int) -> Iterator[Leaf]:
    for name, form, required, optional, _ in attributes(block):
        path = (*above, name)
        if (required or optional) and path not in _UNWRITTEN:
            many = form in (*_TEXTS, *_NUMBERS)
            kind = form[1] if many else form if isinstance(form, str) else "other"
            yield Leaf(path, {"string": "text"}.get(kind, kind), many, _surely(place or path))
    for name, inner, nesting, _ in blocks(block):
        path = (*above, name)
        if len(path) < deepest and path not in _UNWRITTEN:
            yield from _leaves(inner, path, place or (path if nesting == SET else ()), deepest)


def _surely(place: Path) -> Path:
    """The part of a place that an error has for sure."""
    return place[:_SURE] if len(place) == _SURE + 1 else place


def configuration(block: Fields, values: Mapping[Path, Any], present: Collection[Path] = ()) -> Any:
    """A configuration with values by path, and with the blocks of `present` besides."""
    found = empty(block)
    nested = {name: (inner, nesting) for name, inner, nesting, _ in blocks(block)}
    inside: dict[str, dict[Path, Any]] = {path[0]: {} for path in present if path}
    for path, value in values.items():
        if len(path) > 1:
            inside.setdefault(path[0], {})[path[1:]] = value
        else:
            found[path[0]] = value
    for name, those in inside.items():
        inner, nesting = nested[name]
        rest = [path[1:] for path in present if len(path) > 1 and path[0] == name]
        one = configuration(inner, those, rest)
        found[name] = [one] if nesting in MANY else one
    return found


def about(leaf: Leaf, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The errors about the value of a leaf, in a configuration that sets no other leaf of its place."""
    size = len(leaf.place)
    return [one for one in found if one.path[:size] == leaf.place and not _CROSS.search(one.summary)]


def lanes(found: Iterable[Leaf], excluded: Mapping[Path, Collection[Path]]) -> list[list[Leaf]]:
    """Groups of leaves that one configuration can set; `excluded`: the paths beside which one cannot be."""
    groups: list[tuple[list[Leaf], set[Path]]] = []
    for leaf in found:
        apart = {other for path in heads(leaf.path) for other in excluded.get(path, ())}
        for group, places in groups:
            free = not any(_within(leaf.place, other) or _within(other, leaf.place) for other in places)
            if free and not any(_beside(one, leaf, apart, excluded) for one in group):
                group.append(leaf)
                places.add(leaf.place)
                break
        else:
            groups.append(([leaf], {leaf.place}))
    return [group for group, _ in groups]


def _within(place: Path, other: Path) -> bool:
    return place[: len(other)] == other


def _beside(one: Leaf, other: Leaf, apart: set[Path], excluded: Mapping[Path, Collection[Path]]) -> bool:
    back = {path for head in heads(one.path) for path in excluded.get(head, ())}
    return any(path in apart for path in heads(one.path)) or any(path in back for path in heads(other.path))


def heads(path: Path) -> list[Path]:
    """A path and the paths of the blocks around it, from the top."""
    return [path[: size + 1] for size in range(len(path))]
