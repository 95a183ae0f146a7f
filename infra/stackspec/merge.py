"""Merges layers into one tree with origins.

Mappings merge key by key. Lists of named items merge item by item: an item with a new name is appended,
`remove: true` removes one. A mapping with another `kind` (of purchase, for example) replaces the lower one,
as kinds have different keys. Every other value, including `null`, replaces the lower one.
"""

from collections.abc import Iterator
from typing import Any

from infra.errors import Problem
from infra.stackspec.document import REMOVE, Branch, Leaf, Node, Origin, path_below

KIND = "kind"


def merge(base: Node, over: Node) -> Node:
    """The values of `over`, and those of `base` where `over` has none."""
    if not (isinstance(base, Branch) and isinstance(over, Branch) and base.named == over.named):
        return _cleaned(over)
    if _other_kind(base, over):
        return _cleaned(over)
    merged = dict(base.children)
    for key, child in over.children.items():
        if over.named and _removes(child):
            merged.pop(key, None)
        else:
            merged[key] = merge(merged[key], child) if key in merged else _cleaned(child)
    return Branch(merged, over.origin, base.named)


def contradictions(base: Node, over: Node, path: str = "") -> Iterator[Problem]:
    """A problem for each value with different shapes in two layers, which cannot be merged."""
    if isinstance(base, Branch) and isinstance(over, Branch) and base.named == over.named:
        for key, child in over.children.items():
            if key in base.children:
                index = [*base.children].index(key)
                step = f"{path}[{index}]" if base.named else path_below(path, key)
                yield from contradictions(base.children[key], child, step)
        return
    ours, theirs = _shape(over), _shape(base)
    if ours != theirs and "nothing" not in (ours, theirs):
        rule = f"{over.origin} has {ours} here, {base.origin} has {theirs}"
        fix = f"Write {theirs}, or change the layer below."
        yield Problem(path, None, rule, fix, code="layers-differ-in-shape")


def _shape(tree: Node) -> str:
    if isinstance(tree, Branch):
        return "a list" if tree.named else "a mapping"
    if tree.value is None:
        return "nothing"
    return "a list" if isinstance(tree.value, list) else "a single value"


def _other_kind(base: Branch, over: Branch) -> bool:
    ours, theirs = over.children.get(KIND), base.children.get(KIND)
    return isinstance(ours, Leaf) and isinstance(theirs, Leaf) and ours.value != theirs.value


def _removes(item: Node) -> bool:
    flag = item.children.get(REMOVE) if isinstance(item, Branch) else None
    return isinstance(flag, Leaf) and flag.value is True


def _cleaned(tree: Node) -> Node:
    """The tree without `remove: true` items that remove nothing."""
    if not isinstance(tree, Branch):
        return tree
    kept = {
        key: _cleaned(child) for key, child in tree.children.items() if not (tree.named and _removes(child))
    }
    return Branch(kept, tree.origin, tree.named)


def values(tree: Node) -> Any:
    """The plain values of a tree."""
    if isinstance(tree, Leaf):
        return tree.value
    if tree.named:
        return [values(child) for child in tree.children.values()]
    return {key: values(child) for key, child in tree.children.items()}


def leaves(tree: Node, path: str = "") -> dict[str, Leaf | Branch]:
    """Every leaf (and every empty mapping) by its path: `layout.pools[0].rdma`."""
    if isinstance(tree, Leaf) or not tree.children:
        return {path: tree}
    found: dict[str, Leaf | Branch] = {}
    for index, (key, child) in enumerate(tree.children.items()):
        step = f"{path}[{index}]" if tree.named else path_below(path, key)
        found |= leaves(child, step)
    return found


def origins(tree: Node) -> dict[str, Origin]:
    """Origin of each leaf, by path."""
    return {path: leaf.origin for path, leaf in leaves(tree).items()}
