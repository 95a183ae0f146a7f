"""The specs of the stacks of a large stack, from its one spec: of the manager, and of each worker.

A worker's spec is that of a `medium` stack with the pools of its cluster, so everything that reads a spec
reads a worker's, too. Its pools are named `CLUSTER-POOL`: queues, runtimes and node labels then have the
same names on the manager and on the worker, which a job that is copied needs.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from infra.naming import cluster_pool, cluster_stack
from infra.stackspec.clusters.common import KubernetesLayout
from infra.stackspec.clusters.large import OF_OTHER_PLACE, ClusterSpec, LargeLayout, clusters_of
from infra.stackspec.document import ITEM_KEY, Branch, Leaf, Node, Origin, node
from infra.stackspec.layouts import VALIDATED, ClusterLayout
from infra.stackspec.merge import values
from infra.stackspec.several.clouds import names_of
from infra.stackspec.stack import StackSpec

PROFILE = "medium"
"""Profile of a worker's spec."""
# Budgets are checked once, on the manager, whose queue has the jobs of all clusters.
_ON_MANAGER = ("monthly_usd", "monthly_gpu_hours", "over_budget", "budget_exempt")


@dataclass(frozen=True)
class ClusterMember:
    """The place of a worker in its large stack."""

    of: StackSpec
    """The spec of the large stack."""
    cluster: str
    """Name of the cluster there."""

    def is_elsewhere(self, spec: StackSpec) -> bool:
        """Return whether the worker with this spec is on another cloud than its manager."""
        return spec.cloud != self.of.cloud

    @property
    def has_budget(self) -> bool:
        """Return whether the worker has a budget of its own, which that of the manager does not count."""
        found = next(one for one in clusters_of(self.of.layout) if one.name == self.cluster)
        return found.monthly_usd is not None


def digest(spec: StackSpec) -> str:
    """Digest of a spec: a worker that was deployed from another one is not connected."""
    text = json.dumps(spec.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def manager(spec: StackSpec, layout: LargeLayout) -> StackSpec:
    """The spec of the manager: one cluster without pools, whose gate the workers have."""
    common = {name: getattr(layout, name) for name in KubernetesLayout.model_fields}
    own = ClusterLayout.model_construct(profile=cast("Any", layout.profile), pools=(), **common)
    gate = spec.smoke.model_copy(update={"enabled": False, "schedule": None})
    made = spec.model_copy(update={"layout": own, "smoke": gate})
    if not elsewhere(layout):
        return made
    parts = sum(one.monthly_usd or 0 for one in layout.clusters)
    budget = spec.budget.model_copy(update={"monthly_usd": spec.budget.monthly_usd - parts})
    teams = tuple(
        team.model_copy(update={"members": tuple(names_of(spec.cloud, team.members))}) for team in spec.teams
    )
    return made.model_copy(update={"budget": budget, "teams": teams})


def elsewhere(layout: LargeLayout) -> list[ClusterSpec]:
    """The clusters on another cloud, or in another account or project, than the manager's."""
    return [one for one in layout.clusters if one.on is not None]


def layout_of(spec: StackSpec) -> ClusterLayout:
    """The layout of the spec of a manager or a worker."""
    assert isinstance(spec.layout, ClusterLayout)
    return spec.layout


def of_stack(spec: StackSpec) -> StackSpec:
    """The spec of the stack itself: of the manager for a large one, else the same."""
    return manager(spec, spec.layout) if isinstance(spec.layout, LargeLayout) else spec


def worker(spec: StackSpec, cluster: str) -> StackSpec:
    """The spec of a worker. Raises ValidationError for names that are too long, KeyError for no cluster."""
    # Values that are not of their types are reported by other rules.
    tree = worker_tree(node(spec.model_dump(mode="json", warnings=False), "spec"), cluster)
    return StackSpec.model_validate(values(tree))


def workers(spec: StackSpec, layout: LargeLayout) -> dict[str, StackSpec]:
    """The specs of all workers by cluster; ValidationError as `worker`."""
    return {one.name: worker(spec, one.name) for one in layout.clusters}


def worker_tree(tree: Node, cluster: str) -> Branch:
    """The merged layers of a worker from those of its large stack; each value keeps its origin.

    Raises KeyError for a cluster that does not exist.
    """
    spec, layout = _children(tree), _children(_children(tree)["layout"])
    found = layout["clusters"]
    own = _children(_children(found)[cluster])
    pools = _children(own["pools"])
    kept = {name: child for name, child in layout.items() if name not in ("clusters", "scheduler")}
    here = found.origin
    made: dict[str, Node] = {
        **kept,
        "profile": Leaf(PROFILE, here),
        "network_cidr": own["network_cidr"],
        "zones": own["zones"],
        "api_access": own.get("api_access", Leaf([], here)),
        "pools": _pools(cluster, own["pools"]),
    }
    of_stack = str(_plain(_children(spec["on"])["cloud"]))
    other = _of_other_place(spec, own, here) if _plain(own.get("on", Leaf(None, here))) else {}
    cloud = str(_plain(_children(other.get("on", spec["on"]))["cloud"]))
    if cloud != of_stack:
        made |= _of_other_cloud(spec, own, here)
    if _is_mixed(found, of_stack):
        other["teams"] = _named_on(cloud, spec["teams"])
    spec = {**spec, **other}
    data = {**_children(spec["data"]), "shared_fs": own.get("shared_fs", Leaf(None, here))}
    return Branch(
        {
            **spec,
            "name": Leaf(cluster_stack(str(_plain(spec["name"])), cluster), here),
            "region": own["region"],
            "layout": Branch(made, here),
            "data": Branch(data, spec["data"].origin),
            "teams": _each(spec["teams"], lambda team: _team(cluster, pools, team)),
            "smoke": _smoke(cluster, pools, spec["smoke"]),
            "on": _with(spec["on"], pools=lambda given: _renamed(cluster, pools, given)),
        },
        tree.origin,
    )


def _is_mixed(clusters: Node, cloud: str) -> bool:
    """Return whether a cluster is on another cloud than this one, the manager's."""
    rows = [_plain(_children(one).get("on", Leaf(None, one.origin))) for one in _children(clusters).values()]
    return any(row is not None and row["cloud"] != cloud for row in rows)


def _of_other_place(spec: Mapping[str, Node], own: Mapping[str, Node], here: Origin) -> dict[str, Node]:
    """Parts of a cluster with settings of its cloud instead of the large stack's."""
    none = Leaf(None, here)
    given = {name: own.get(name, none) for name in OF_OTHER_PLACE}
    return {
        "on": own["on"],
        "budget": _over(spec["budget"], "monthly_usd", given["monthly_usd"]),
        "tracking": _over(spec.get("tracking", none), "image", given["tracking_image"]),
        "smoke": _over(spec["smoke"], "image", given["smoke_image"]),
    }


def _of_other_cloud(spec: Mapping[str, Node], own: Mapping[str, Node], here: Origin) -> dict[str, Node]:
    """Parts of the layout of a cluster on another cloud instead of the large stack's."""
    none = Leaf(None, here)
    system = _children(spec["layout"])["system_pool"]
    return {
        "idle_minutes": own.get("idle_minutes", none),
        "system_pool": _over(system, "machine", own.get("system_machine", none)),
    }


def _over(base: Node, key: str, value: Node) -> Node:
    return base if _plain(value) is None or not isinstance(base, Branch) else _with_child(base, key, value)


def _with_child(tree: Branch, key: str, child: Node) -> Branch:
    return Branch({**tree.children, key: child}, tree.origin, tree.named)


def _named_on(cloud: str, teams: Node) -> Branch:
    """Teams with the names that their members have on a cloud."""

    def named(given: Node) -> Node:
        return Leaf(list(names_of(cloud, _plain(given))), given.origin)

    return _each(teams, lambda team: _with(team, members=named))


def _pools(cluster: str, pools: Node) -> Branch:
    named = {}
    for name, pool in _children(pools).items():
        full = cluster_pool(cluster, name)
        named[full] = Branch({**_children(pool), ITEM_KEY: Leaf(full, pool.origin)}, pool.origin)
    return Branch(named, pools.origin, named=True)


def _team(cluster: str, pools: Collection[str], team: Node) -> Branch:
    kept = {name: child for name, child in _children(team).items() if name not in _ON_MANAGER}
    rename = {name: lambda given: _renamed(cluster, pools, given) for name in ("gpus", "shares")}
    return _with(Branch(kept, team.origin), **rename)


def _smoke(cluster: str, pools: Mapping[str, Node], smoke: Node) -> Branch:
    """The gate of a worker; none where `smoke.pools` names others' pools alone, or no pool trains."""
    named = _plain(_children(smoke).get("pools", Leaf(None, smoke.origin)))
    if named is None:
        if any(_plain(_children(one)["purpose"]) in VALIDATED for one in pools.values()):
            return _with(smoke)
    elif mine := [cluster_pool(cluster, name) for name in named if name in pools]:
        return _with(smoke, pools=lambda given: Leaf(mine, given.origin))
    off: dict[str, Node] = {"enabled": Leaf(False, smoke.origin), "schedule": Leaf(None, smoke.origin)}
    return Branch({**_children(smoke), **off, "pools": Leaf(None, smoke.origin)}, smoke.origin)


def _renamed(cluster: str, pools: Collection[str], by_pool: Node) -> Branch:
    """A mapping by pool with those of the cluster alone, by their full names."""
    mine = {cluster_pool(cluster, name): child for name, child in _children(by_pool).items() if name in pools}
    return Branch(mine, by_pool.origin)


def _with(tree: Node, **changes: Callable[[Node], Node]) -> Branch:
    """The tree with some children changed, where it has them."""
    children = dict(_children(tree))
    for name, change in changes.items():
        if name in children:
            children[name] = change(children[name])
    return Branch(children, tree.origin)


def _each(items: Node, change: Callable[[Node], Node]) -> Branch:
    return Branch({name: change(one) for name, one in _children(items).items()}, items.origin, named=True)


def _children(tree: Node) -> dict[str, Node]:
    """The children; TypeError for a value that a typed spec does not have there."""
    if not isinstance(tree, Branch):
        raise TypeError(f"{tree.origin} is no mapping")
    return dict(tree.children)


def _plain(tree: Node) -> Any:
    return values(tree)
