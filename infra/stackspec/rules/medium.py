"""Rules of the medium layout, on every cloud."""

from collections.abc import Callable, Iterator

from infra.errors import Problem
from infra.stackspec.layouts import MediumLayout
from infra.stackspec.stack import StackSpec

Rule = Callable[[StackSpec, MediumLayout], Iterator[Problem]]


def zones_once(_: StackSpec, layout: MediumLayout) -> Iterator[Problem]:
    """Each zone is named once."""
    if len(set(layout.zones)) < len(layout.zones):
        yield Problem("layout.zones", list(layout.zones), "a zone is named twice", "Name each zone once.")


def zones_of_pools(spec: StackSpec, layout: MediumLayout) -> Iterator[Problem]:
    """Pools and the file system are in zones of the network; RDMA and reservations in a single one."""
    fix = f"Use one of layout.zones: {', '.join(layout.zones)}."
    for index, pool in enumerate(layout.pools):
        path = f"layout.pools[{index}].zones"
        for at, zone in enumerate(pool.zones):
            if zone not in layout.zones:
                yield Problem(f"{path}[{at}]", zone, "the network has no subnet in this zone", fix)
        if len(set(pool.zones)) == 1:
            continue
        if pool.rdma:
            rule = f"RDMA does not cross zones, so the pool needs exactly one, not {len(pool.zones)}"
            yield Problem(path, list(pool.zones), rule, "Name one zone, or set rdma to false.")
        elif pool.purchase.kind in ("reserved", "block"):
            rule = "a reservation is in one zone"
            yield Problem(path, list(pool.zones), rule, "Name the zone of the reservation.")
    shared = spec.data.shared_fs
    if shared is not None and shared.zone not in layout.zones:
        yield Problem("data.shared_fs.zone", shared.zone, "the network has no subnet in this zone", fix)


def sizes(_: StackSpec, layout: MediumLayout) -> Iterator[Problem]:
    """No pool is larger at its smallest than at its largest."""
    ranges = {"layout.system_pool": (layout.system_pool.min_nodes, layout.system_pool.max_nodes)}
    for index, pool in enumerate(layout.pools):
        ranges[f"layout.pools[{index}]"] = pool.min_nodes, pool.max_nodes
    for path, (least, most) in ranges.items():
        if least > most:
            rule, largest = f"above max_nodes {most}", f"{path}.max_nodes"
            fix = "Lower it or raise max_nodes."
            yield Problem(f"{path}.min_nodes", least, rule, fix, against=largest)


def pool_names(_: StackSpec, layout: MediumLayout) -> Iterator[Problem]:
    """Each pool has a name of its own."""
    names = [pool.name for pool in layout.pools]
    for index, name in enumerate(names):
        if name in names[:index]:
            path = f"layout.pools[{index}].name"
            yield Problem(path, name, "the name is taken", "Give each pool its own name.")


def guarantees(spec: StackSpec, layout: MediumLayout) -> Iterator[Problem]:
    """Guarantees name pools that exist."""
    names = {pool.name for pool in layout.pools}
    for index, team in enumerate(spec.teams):
        for pool, gpus in team.gpus.items():
            if pool not in names:
                fix = f"Pools are {', '.join(sorted(names))}."
                yield Problem(f"teams[{index}].gpus.{pool}", gpus, "there is no such pool", fix)


def validated_pool(spec: StackSpec, layout: MediumLayout) -> Iterator[Problem]:
    """The gate runs on a pool that exists and can hold it."""
    pool = next((item for item in layout.pools if item.name == spec.smoke.pool), None)
    if pool is None:
        fix = f"Pools are {', '.join(item.name for item in layout.pools)}."
        yield Problem("smoke.pool", spec.smoke.pool, "there is no such pool", fix)
    elif spec.smoke.nodes > pool.max_nodes:
        rule = f"pool {pool.name} has at most {pool.max_nodes} nodes"
        fix = "Lower smoke.nodes or raise the pool's max_nodes."
        yield Problem("smoke.nodes", spec.smoke.nodes, rule, fix)


RULES: tuple[Rule, ...] = (zones_once, zones_of_pools, sizes, pool_names, guarantees, validated_pool)
