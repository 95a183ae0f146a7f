"""Merging defaults with what an environment says, without forgetting who said what.

Mappings merge key by key. Lists of named items merge item by item: an item of a name that is new is added at
the end, `remove: true` takes one out. Every other value, `null` included, replaces what was there.
"""

from typing import Any

from infra.spec.document import REMOVE, Branch, Leaf, Node, Origin


def merge(base: Node, over: Node) -> Node:
    """What `over` says, and what `base` says where `over` is silent."""
    if not (isinstance(base, Branch) and isinstance(over, Branch) and base.named == over.named):
        return _cleaned(over)
    merged = dict(base.children)
    for key, child in over.children.items():
        if over.named and _removes(child):
            merged.pop(key, None)
        else:
            merged[key] = merge(merged[key], child) if key in merged else _cleaned(child)
    return Branch(merged, over.origin, base.named)


def _removes(item: Node) -> bool:
    flag = item.children.get(REMOVE) if isinstance(item, Branch) else None
    return isinstance(flag, Leaf) and flag.value is True


def _cleaned(tree: Node) -> Node:
    """The tree without items that only say `remove: true` about something that never was."""
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


def origins(tree: Node, path: str = "") -> dict[str, Origin]:
    """Where each leaf comes from, by its path: `pools[0].capacity`."""
    if isinstance(tree, Leaf):
        return {path: tree.origin}
    found: dict[str, Origin] = {} if tree.children else {path: tree.origin}
    for index, (key, child) in enumerate(tree.children.items()):
        step = f"{path}[{index}]" if tree.named else f"{path}.{key}" if path else key
        found |= origins(child, step)
    return found
