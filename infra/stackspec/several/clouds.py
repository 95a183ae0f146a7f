"""Clusters on another cloud or in another account than their manager: defaults, and names of members."""

from collections.abc import Iterator, Mapping, Sequence

from infra.stackspec import layers
from infra.stackspec.clusters.large import ClusterSpec
from infra.stackspec.document import ITEM_KEY, Branch, Leaf, Node, Origin
from infra.stackspec.model import CloudModel
from infra.stackspec.supported import SUPPORTED
from infra.stackspec.unions import arms

CLOUDS: Mapping[str, type[CloudModel]] = {
    name: arm for name, arm in arms(ClusterSpec.model_fields["on"]).items() if issubclass(arm, CloudModel)
}
"""Models of the settings of clouds that clusters may be on."""


# How the stack's own account is reached says nothing of another one.
_OF_ACCOUNT = ("assume_role", "impersonate")


def names_of(cloud: str, members: Sequence[str]) -> Iterator[str]:
    """The names of members on a cloud."""
    person = CLOUDS[cloud].person
    return (one for one in members if person.match(one))


def defaults(merged: Node, profile: str, cloud: str) -> Node | None:
    """A layer with the defaults of clusters with settings of their own (`on`); None if there are none.

    On another cloud they are those of the profile there, in another account those of the stack. `merged` is
    the spec so far. Values that are not of their types are reported elsewhere.
    """
    clusters = _at(merged, "layout", "clusters")
    if not isinstance(clusters, Branch) or not clusters.named:
        return None
    clouds = {name: _cloud(one) or cloud for name, one in clusters.children.items()}
    given = {name: _at(one, "on") is not None for name, one in clusters.children.items()}
    if not any(other != cloud or given[name] for name, other in clouds.items()):
        return None
    # All of them, so that they keep their order.
    rows: dict[str, Node] = {}
    for name, other in clouds.items():
        here = clusters.children[name].origin
        own: dict[str, Node] = {ITEM_KEY: Leaf(name, here)}
        if other != cloud and (profile, other) in SUPPORTED:
            own |= _of_profile(layers.overlay(profile, other), other, here)
        elif given[name]:
            own["on"] = _of_stack(merged, clusters.children[name], other, here)
        rows[name] = Branch(own, here)
    here = clusters.origin
    return Branch({"layout": Branch({"clusters": Branch(rows, here, named=True)}, here)}, here)


def _of_profile(overlay: Node, cloud: str, here: Origin) -> Mapping[str, Node]:
    on = _at(overlay, "on")
    found: dict[str, Node] = {
        "on": Branch({**(on.children if isinstance(on, Branch) else {}), "cloud": Leaf(cloud, here)}, here)
    }
    for key, path in (("idle_minutes", ("idle_minutes",)), ("system_machine", ("system_pool", "machine"))):
        value = _at(overlay, "layout", *path)
        if value is not None:
            found[key] = value
    return found


def _of_stack(merged: Node, cluster: Node, cloud: str, here: Origin) -> Node:
    """The settings of the stack, with those of pools of the cluster alone."""
    found = _at(merged, "on")
    kept = dict(found.children) if isinstance(found, Branch) else {}
    for name in _OF_ACCOUNT:
        kept.pop(name, None)
    pools, own = kept.get("pools"), _at(cluster, "pools")
    if isinstance(pools, Branch) and isinstance(own, Branch):
        rows = {name: one for name, one in pools.children.items() if name in own.children}
        kept["pools"] = Branch(rows, pools.origin, pools.named)
    return Branch({**kept, "cloud": Leaf(cloud, here)}, here)


def _cloud(cluster: Node) -> str | None:
    found = _at(cluster, "cloud")
    return found.value if isinstance(found, Leaf) and isinstance(found.value, str) else None


def _at(tree: Node, *path: str) -> Node | None:
    found: Node | None = tree
    for key in path:
        found = found.children.get(key) if isinstance(found, Branch) else None
    return found
