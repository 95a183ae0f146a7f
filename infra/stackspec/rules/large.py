"""Rules of a layout of several clusters: between its clusters, and those of each cluster's own spec."""

import re
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network
from itertools import combinations

from infra.catalog import ranges
from infra.errors import Problem, did_you_mean
from infra.naming import cluster_pool, cluster_stack
from infra.stackspec.clusters.large import LargeLayout
from infra.stackspec.layouts import VALIDATED
from infra.stackspec.rules import checkpoints, core, mixed
from infra.stackspec.several.derived import manager, workers
from infra.stackspec.stack import StackSpec

Rule = Callable[[StackSpec, LargeLayout], Iterator[Problem]]
MOST_CHARACTERS = 32
"""Length of the name of a stack and of a pool (`infra.stackspec.model.Name`)."""
OfCluster = Callable[[StackSpec], list[Problem]]
"""Problems of the spec of one cluster."""
_CLUSTERS = mixed.CLUSTERS
_OF_ALL = (*core.RULES, *checkpoints.RULES)
_OF_MANAGER = re.compile(r"^(trainstack:region|layout\.(?!pools))")
_OWN = re.compile(r"^layout\.(pools|zones|network_cidr|api_access)(?=[.\[]|$)")


def scheduler(_: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """The scheduler is Kueue."""
    if layout.scheduler != "kueue":
        rule, fix = "is not supported yet", "Set kueue."
        yield Problem("layout.scheduler", layout.scheduler, rule, fix, code="scheduler-not-supported")


def cluster_names(spec: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """Names are unique, and leave room for the names of stacks and pools of the clusters."""
    names = [one.name for one in layout.clusters]
    for index, one in enumerate(layout.clusters):
        path = f"{_CLUSTERS}[{index}]"
        if one.name in names[:index]:
            rule, fix = "two clusters have this name", "Name each cluster differently."
            yield Problem(f"{path}.name", one.name, rule, fix, code="cluster-named-twice")
        stack = cluster_stack(spec.name, one.name)
        if len(stack) > MOST_CHARACTERS:
            rule = (
                f"its stack {stack} has {len(stack)} characters, and at most {MOST_CHARACTERS} are possible"
            )
            fix = "Choose a shorter name, such as usw2."
            yield Problem(f"{path}.name", one.name, rule, fix, code="cluster-name-too-long")
        for at, pool in enumerate(one.pools):
            full = cluster_pool(one.name, pool.name)
            if len(full) > MOST_CHARACTERS:
                rule = (
                    f"its full name {full} has {len(full)} characters; at most {MOST_CHARACTERS} are possible"
                )
                where, fix = f"{path}.pools[{at}].name", "Choose a shorter name of the pool or the cluster."
                yield Problem(where, pool.name, rule, fix, f"{path}.name", code="pool-name-too-long")


def full_names(_: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """Full names of pools are unique: cluster `a` with pool `b-c` has that of `a-b` with `c`."""
    seen: dict[str, str] = {}
    for index, one in enumerate(layout.clusters):
        if one.name in (other.name for other in layout.clusters[:index]):
            continue
        for at, pool in enumerate(one.pools):
            full, path = cluster_pool(one.name, pool.name), f"{_CLUSTERS}[{index}].pools[{at}].name"
            if pool.name in (other.name for other in one.pools[:at]):
                rule = "two pools of this cluster have this name"
                yield Problem(path, pool.name, rule, "Name each pool differently.", code="pool-named-twice")
            if seen.setdefault(full, one.name) != one.name:
                rule = f"its full name {full} is that of a pool of cluster {seen[full]}"
                yield Problem(path, pool.name, rule, "Rename the pool.", code="pool-named-as-another")


def network_ranges(_: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """Networks do not overlap: that of the manager is, or can be, connected to each of the others."""
    given = [("layout.network_cidr", layout.network_cidr)]
    given += [(f"{_CLUSTERS}[{at}].network_cidr", one.network_cidr) for at, one in enumerate(layout.clusters)]
    known = [
        (path, found) for path, cidr in given if not isinstance(found := ranges.parsed(path, cidr), Problem)
    ]
    for (first, one), (second, other) in combinations(known, 2):
        if one.overlaps(other):
            rule = f"overlaps {one}, and networks that overlap cannot be connected"
            fix = f"Use another range, such as {_unused([found for _, found in known])}."
            yield Problem(second, str(other), rule, fix, first, code="networks-overlap")


def _unused(taken: list[IPv4Network]) -> IPv4Network:
    """A range of 10.0.0.0/8 that overlaps none."""
    every = IPv4Network("10.0.0.0/8").subnets(new_prefix=16)
    return next((one for one in every if not any(one.overlaps(other) for other in taken)), taken[0])


def guarantees(spec: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """Each team has a guarantee on at least one cluster, for pools that exist."""
    pools = {pool.name for one in layout.clusters for pool in one.pools}
    for index, team in enumerate(spec.teams):
        for key, given in (("gpus", team.gpus), ("shares", team.shares)):
            for name, count in given.items():
                if name not in pools:
                    fix = f"Pools are {', '.join(sorted(pools))}, without the name of a cluster."
                    where = f"teams[{index}].{key}.{name}"
                    yield Problem(where, count, "unknown pool", fix, code="unknown-pool")
        if not any(team.guarantees.values()):
            rule = "the team has no guarantee on any cluster, so its jobs only borrow"
            fix = f"Guarantee GPUs of a pool: {', '.join(sorted(pools))}."
            yield Problem(f"teams[{index}].gpus", dict(team.gpus), rule, fix, code="team-without-quota")


def named_pools(spec: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """Pools that the gate and a cloud's settings name exist on some cluster, of that cloud."""
    every = sorted({pool.name for one in layout.clusters for pool in one.pools})
    here = [one for one in layout.clusters if one.on is None or one.on.cloud == spec.on.cloud]
    own = sorted({pool.name for one in here for pool in one.pools})
    given = [(f"smoke.pools[{index}]", name, every) for index, name in enumerate(spec.smoke.pools or ())]
    given += [(f"on.pools.{name}", name, own) for name in getattr(spec.on, "pools", ())]
    for index, one in enumerate(layout.clusters):
        named, pools = getattr(one.on, "pools", ()), sorted(pool.name for pool in one.pools)
        given += [(f"{_CLUSTERS}[{index}].on.pools.{name}", name, pools) for name in named]
    for path, name, pools in given:
        if name not in pools:
            fix = did_you_mean(name, pools, f"Pools are {', '.join(pools)}.")
            yield Problem(path, name, "unknown pool", fix, code="unknown-pool")


def gate(spec: StackSpec, layout: LargeLayout) -> Iterator[Problem]:
    """A gate validates at least one pool; a cluster without one that trains has none."""
    trains = any(pool.purpose in VALIDATED for one in layout.clusters for pool in one.pools)
    if spec.smoke.enabled and not (trains if spec.smoke.pools is None else spec.smoke.pools):
        rule = "the gate has no pool to validate"
        fix = "Name pools, give one the purpose training, or set smoke.enabled to false."
        value = None if spec.smoke.pools is None else list(spec.smoke.pools)
        yield Problem("smoke.pools", value, rule, fix, code="gate-validates-nothing")


def own_parts(spec: StackSpec, _: LargeLayout) -> Iterator[Problem]:
    """Parts that belong to one cluster are not said for all of them."""
    if spec.data.shared_fs is not None:
        rule, fix = "a file system is in one zone", f"Move it to {_CLUSTERS}[].shared_fs."
        value = spec.data.shared_fs.zone
        yield Problem("data.shared_fs", value, rule, fix, code="shared-fs-of-all-clusters")
    if getattr(spec.on, "load_balancer", None) is not None:
        rule = "each cluster has a tracking server of its own, and one host name is of one server"
        fix = "Set null: `trainstack open mlflow -s STACK-CLUSTER` opens that of a cluster."
        yield Problem("on.load_balancer", None, rule, fix, code="load-balancer-of-all-clusters")
    for name in ("rapid_checkpoints", "first_rdma_zone"):
        if (zone := getattr(spec.on, name, None)) is not None:
            rule, fix = "a zone is of one cluster, and this holds for all", "Leave it out."
            yield Problem(f"on.{name}", zone, rule, fix, code="zone-of-all-clusters")


RULES: tuple[Rule, ...] = (
    scheduler,
    cluster_names,
    full_names,
    *mixed.RULES,
    network_ranges,
    guarantees,
    named_pools,
    gate,
    own_parts,
)


def of_clusters(spec: StackSpec, layout: LargeLayout, check: OfCluster) -> Iterator[Problem]:
    """Problems of the specs of the clusters, at the paths of the one spec; those of several once.

    Nothing where a rule between clusters is broken: the specs of clusters could not be made of it.
    """
    if any(True for rule in RULES for _ in rule(spec, layout)):
        return
    try:
        made = workers(spec, layout)
    except (ValueError, KeyError):
        return  # values that are missing or not of their types, which are reported anyway
    seen = {(problem.path, problem.code) for rule in _OF_ALL for problem in rule(spec)}
    # The manager has no pools, so rules that need some do not hold for it.
    for problem in check(manager(spec, layout)):
        if _OF_MANAGER.match(problem.path):
            seen.add((problem.path, problem.code))
            yield problem
    for index, one in enumerate(made.values()):
        for problem in check(one):
            found = _placed(mixed.at_member(problem, spec), index, layout)
            if (found.path, found.code) not in seen:
                seen.add((found.path, found.code))
                yield found


def _placed(problem: Problem, index: int, layout: LargeLayout) -> Problem:
    """A problem of a worker's spec at the path of the large one, whose pools have short names there."""
    one = layout.clusters[index]

    def path(given: str) -> str:
        if given == "trainstack:region":
            return f"{_CLUSTERS}[{index}].region"
        if given.startswith("data.shared_fs"):
            return given.replace("data.shared_fs", f"{_CLUSTERS}[{index}].shared_fs", 1)
        placed = mixed.own_path(given, one, index) or _OWN.sub(rf"{_CLUSTERS}[{index}].\1", given)
        return placed.replace(f".{one.name}-", ".")

    # Clusters behind a manager have names alone.
    fix = "Leave it empty." if problem.code == "api-ranges-without-address" else problem.fix
    return Problem(
        path(problem.path), problem.value, problem.rule, fix, path(problem.against), code=problem.code
    )
