"""Stack files of the former form: which key became which.

The former spec had one form for all sizes and clouds, with the words of AWS in it. A file of that form is
refused, with the new form of each value that it holds.
"""

import json
from collections.abc import Iterator
from typing import Any

from infra.errors import Problem
from infra.stackspec.document import Branch, Leaf, Node

# Former path (without indices) to the new one; the longest match counts, what follows it is kept.
_MOVED = {
    "network.cidr": "layout.network_cidr",
    "network.zones": "layout.zones",
    "network.nat": "on.nat",
    "network.flow_log_retention_days": "data.log_retention_days",
    "network.interface_endpoints": "on.endpoints",
    "cluster.kubernetes_version": "layout.kubernetes_version",
    "cluster.public_access_cidrs": "layout.api_access",
    "cluster.efa_driver": "on.efa_driver",
    "cluster.admin_principal_arns": "on.admin_arns",
    "cluster.idle_minutes": "layout.idle_minutes",
    "cluster.log_retention_days": "data.log_retention_days",
    "cluster.system_pool": "layout.system_pool",
    "cluster.system_pool.instance_type": "layout.system_pool.machine",
    "cluster.system_pool.min_size": "layout.system_pool.min_nodes",
    "cluster.system_pool.max_size": "layout.system_pool.max_nodes",
    "pools": "layout.pools",
    "pools.instance_type": "layout.pools.machine",
    "pools.capacity": "layout.pools.purchase.kind",
    "pools.reservation_id": "layout.pools.purchase.id",
    "pools.efa": "layout.pools.rdma",
    "pools.min_size": "layout.pools.min_nodes",
    "pools.max_size": "layout.pools.max_nodes",
    "storage.lustre": "data.shared_fs",
    "storage.lustre.efa": "data.shared_fs.rdma",
    "storage": "data",
    "storage.checkpoint_retention_days": "data.checkpoints.expire_days",
    "data.checkpoint_retention_days": "data.checkpoints.expire_days",
    "tracking.min_acu": "on.database.min_acu",
    "tracking.max_acu": "on.database.max_acu",
}
_KINDS = {"capacity_block": "block"}
_POOLS = "pools"
Keys = tuple[str, ...]


def translated(tree: Branch) -> tuple[Branch, list[Problem]]:
    """The tree in the new form, and a problem for each value that stood at a former path."""
    new: dict[str, Any] = {}
    moved: list[Problem] = []
    pools = tree.children.get(_POOLS)
    names = [*pools.children] if isinstance(pools, Branch) and pools.named else []
    for keys, leaf in _leaves(tree):
        item = keys[1:2] if names and keys[0] == _POOLS else ()
        former = (keys[0], *keys[1 + len(item) :])
        place, value = _place(former), _in_new_words(former, leaf)
        _put(new, (*place[:2], *item, *place[2:]) if item else place, value)
        if place != former:
            index = names.index(item[0]) if item else None
            moved.append(_problem(_text(former, index), _text(place, index), leaf, value))
    return _branch(new, tree), moved


def _leaves(tree: Branch, above: Keys = ()) -> Iterator[tuple[Keys, Node]]:
    for key, child in tree.children.items():
        if isinstance(child, Branch) and child.children:
            yield from _leaves(child, (*above, key))
        else:
            yield (*above, key), child


def _place(former: Keys) -> Keys:
    for length in range(len(former), 0, -1):
        now = _MOVED.get(".".join(former[:length]))
        if now is not None:
            return (*now.split("."), *former[length:])
    return former


def _in_new_words(former: Keys, leaf: Node) -> Node:
    if former == (_POOLS, "capacity") and isinstance(leaf, Leaf):
        return Leaf(_KINDS.get(leaf.value, leaf.value), leaf.origin)
    return leaf


def _put(into: dict[str, Any], keys: Keys, value: Node) -> None:
    for key in keys[:-1]:
        into = into.setdefault(key, {})
    into[keys[-1]] = value


def _branch(content: dict[str, Any], former: Branch, keys: Keys = ()) -> Branch:
    children: dict[str, Node] = {
        key: _branch(child, former, (*keys, key)) if isinstance(child, dict) else child
        for key, child in content.items()
    }
    named = keys == ("layout", _POOLS) or _was_named(former, keys)
    return Branch(children, former.origin, named)


def _was_named(former: Branch, keys: Keys) -> bool:
    node: Node | None = former
    for key in keys:
        node = node.children.get(key) if isinstance(node, Branch) else None
    return isinstance(node, Branch) and node.named


def _text(keys: Keys, index: int | None) -> str:
    """The path in the notation of `trainstack explain`: `layout.pools[0].machine`."""
    if index is None:
        return ".".join(keys)
    at = keys.index(_POOLS)
    return ".".join([*keys[:at], f"{_POOLS}[{index}]", *keys[at + 1 :]])


def _problem(was: str, now: str, found: Node, value: Node) -> Problem:
    text = json.dumps(value.value) if isinstance(value, Leaf) else "{}"
    got = found.value if isinstance(found, Leaf) else {}
    return Problem(was, got, "the key has moved", f"Write `{now}: {text}`.", origin=str(found.origin))
