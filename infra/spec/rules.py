"""What must hold between the parts of a spec: each rule is a small function that yields problems."""

import ipaddress
from collections import defaultdict
from collections.abc import Callable, Iterator

from infra.catalog.aws import facts
from infra.catalog.errors import UnknownFactError
from infra.errors import Problem
from infra.naming import team_namespace
from infra.spec import cron
from infra.spec.compute import PoolSpec
from infra.spec.stack import StackSpec

Rule = Callable[[StackSpec], Iterator[Problem]]


def broken_rules(spec: StackSpec, *, tolerant_of_gaps: bool = False) -> list[Problem]:
    """Every problem of every rule.

    With `tolerant_of_gaps`, values of the spec may be missing or of a wrong type: a rule that needs one of
    them cannot be judged and is left out.
    """
    problems = []
    for rule in RULES:
        try:
            problems += list(rule(spec))
        except (AttributeError, TypeError):
            if not tolerant_of_gaps:
                raise
    return problems


def region_and_zones(spec: StackSpec) -> Iterator[Problem]:
    """The region is known, and its zones are zones of it."""
    regions = facts.regions
    region = regions.get(spec.region)
    if region is None:
        yield Problem("region", spec.region, "unknown region", f"Known are {', '.join(sorted(regions))}.")
        return
    for index, zone in enumerate(spec.network.zones):
        if zone not in region.zones:
            fix = f"{spec.region} has {', '.join(region.zones)}."
            yield Problem(f"network.zones[{index}]", zone, f"not a zone of {spec.region}", fix)
    if len(set(spec.network.zones)) < len(spec.network.zones):
        yield Problem(
            "network.zones", list(spec.network.zones), "a zone is named twice", "Name each zone once."
        )


def network_range(spec: StackSpec) -> Iterator[Problem]:
    """The VPC range is a private network of a size that holds nodes, pods and EFA interfaces."""
    try:
        network = ipaddress.ip_network(spec.network.cidr)
    except ValueError as error:
        yield Problem("network.cidr", spec.network.cidr, str(error), "Write a network such as 10.0.0.0/16.")
        return
    if not 16 <= network.prefixlen <= 18:
        fix = "Use /16 to /18: AWS allows no larger VPC, and pods of GPU nodes need the addresses."
        yield Problem("network.cidr", spec.network.cidr, "the range has the wrong size", fix)
    if not network.is_private:
        yield Problem(
            "network.cidr", spec.network.cidr, "not a private range", "Use 10.0.0.0/8 or 172.16.0.0/12."
        )


def public_access(spec: StackSpec) -> Iterator[Problem]:
    """Whoever may reach the API server from outside is named, and is not everybody."""
    for index, cidr in enumerate(spec.cluster.public_access_cidrs):
        path = f"cluster.public_access_cidrs[{index}]"
        try:
            network = ipaddress.ip_network(cidr)
        except ValueError as error:
            yield Problem(path, cidr, str(error), "Write the range of your office or VPN.")
            continue
        if network.prefixlen < 8:
            fix = "Name the ranges of your office or VPN, or leave the list empty."
            yield Problem(path, cidr, "opens the Kubernetes API to the internet", fix)


def kubernetes_version(spec: StackSpec) -> Iterator[Problem]:
    """The version is one that EKS offers."""
    offered = facts.eks.versions
    if spec.cluster.kubernetes_version not in offered:
        fix = f"Use one of {', '.join(offered)}."
        yield Problem(
            "cluster.kubernetes_version", spec.cluster.kubernetes_version, "not a version EKS supports", fix
        )


def sizes(spec: StackSpec) -> Iterator[Problem]:
    """No pool is larger at its smallest than at its largest."""
    pool = spec.cluster.system_pool
    if pool.min_size > pool.max_size:
        yield Problem(
            "cluster.system_pool.min_size", pool.min_size, f"above max_size {pool.max_size}", "Lower it."
        )
    for index, gpu_pool in enumerate(spec.pools):
        if gpu_pool.min_size > gpu_pool.max_size:
            rule = f"above max_size {gpu_pool.max_size}"
            yield Problem(f"pools[{index}].min_size", gpu_pool.min_size, rule, "Lower it or raise max_size.")
    if spec.tracking.min_acu > spec.tracking.max_acu:
        rule = f"above max_acu {spec.tracking.max_acu}"
        yield Problem("tracking.min_acu", spec.tracking.min_acu, rule, "Lower it or raise max_acu.")


def pool_hardware(spec: StackSpec) -> Iterator[Problem]:
    """Each pool names a GPU type that exists, in zones of the stack, with EFA only where there is EFA."""
    for index, pool in enumerate(spec.pools):
        path = f"pools[{index}]"
        for at, zone in enumerate(pool.zones):
            if zone not in spec.network.zones:
                fix = f"Use a zone of network.zones: {', '.join(spec.network.zones)}."
                yield Problem(f"{path}.zones[{at}]", zone, "the network has no subnet in this zone", fix)
        try:
            hardware = facts.instance_type(pool.instance_type)
        except UnknownFactError as error:
            yield Problem(f"{path}.instance_type", pool.instance_type, "unknown accelerator type", str(error))
            continue
        if pool.efa and not hardware.efa:
            with_efa = sorted(
                name
                for name, other in facts.instance_types.items()
                if other.efa and other.accelerator == hardware.accelerator
            )
            fix = f"Set {path}.efa to false" + (f", or use {', '.join(with_efa)}." if with_efa else ".")
            yield Problem(f"{path}.efa", True, f"{pool.instance_type} has no EFA", fix)
        elif pool.efa and len(pool.zones) != 1:
            rule = f"{pool.instance_type} with EFA needs one zone; got {len(pool.zones)}"
            yield Problem(f"{path}.efa", True, rule, f"Set {path}.zones to one zone.")
        yield from _capacity(path, pool, capacity_blocks=hardware.capacity_block)


def _capacity(path: str, pool: PoolSpec, *, capacity_blocks: bool) -> Iterator[Problem]:
    reserved = pool.capacity in ("reserved", "capacity_block")
    if reserved and pool.reservation_id is None:
        fix = "Add the id of the reservation (cr-...), or buy the nodes on_demand."
        yield Problem(f"{path}.reservation_id", None, f"capacity {pool.capacity} needs a reservation", fix)
    if not reserved and pool.reservation_id is not None:
        fix = "Remove it, or set capacity to reserved or capacity_block."
        yield Problem(f"{path}.reservation_id", pool.reservation_id, f"{pool.capacity} nodes use none", fix)
    if pool.capacity == "capacity_block" and not capacity_blocks:
        fix = "Use on_demand, spot or reserved."
        yield Problem(f"{path}.capacity", pool.capacity, f"{pool.instance_type} is not sold in blocks", fix)
    if reserved and len(pool.zones) != 1:
        fix = f"Set {path}.zones to the zone of the reservation."
        yield Problem(f"{path}.zones", list(pool.zones), "a reservation is in one zone", fix)


def repeated_names(spec: StackSpec) -> Iterator[Problem]:
    """Names stay different after they are turned into Kubernetes names."""
    by_label: dict[str, list[int]] = defaultdict(list)
    for index, team in enumerate(spec.teams):
        try:
            by_label[team_namespace(team.name)].append(index)
        except ValueError as error:
            yield Problem(f"teams[{index}].name", team.name, str(error), "Use a name with letters or digits.")
    for label, indices in by_label.items():
        for index in indices[1:]:
            first = spec.teams[indices[0]].name
            rule = f"becomes the namespace {label!r}, as {first!r} does"
            yield Problem(f"teams[{index}].name", spec.teams[index].name, rule, "Rename one of the two.")
    names = [pool.name for pool in spec.pools]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Problem(f"pools[{index}].name", name, "the name is taken", "Give each pool its own name.")


def lustre(spec: StackSpec) -> Iterator[Problem]:
    """The file system has a size that FSx sells, in a zone of the network."""
    wanted = spec.storage.lustre
    if wanted is None:
        return
    problem = facts.lustre.lustre_problem(wanted.capacity_gib, wanted.throughput_mb_s_per_tib, wanted.efa)
    if problem:
        yield Problem(
            "storage.lustre", f"{wanted.capacity_gib} GiB", problem, "Change it to a size that exists."
        )
    if wanted.zone not in spec.network.zones:
        fix = f"Use one of {', '.join(spec.network.zones)}."
        yield Problem("storage.lustre.zone", wanted.zone, "the network has no subnet in this zone", fix)


def quotas(spec: StackSpec) -> Iterator[Problem]:
    """Guarantees name pools that exist and never add up to more than a pool can hold."""
    promised: dict[str, int] = defaultdict(int)
    names = {pool.name for pool in spec.pools}
    for index, team in enumerate(spec.teams):
        for pool, gpus in team.gpus.items():
            promised[pool] += gpus
            if pool not in names:
                fix = f"Pools are {', '.join(sorted(names))}."
                yield Problem(f"teams[{index}].gpus.{pool}", gpus, "there is no such pool", fix)
    for index, item in enumerate(spec.pools):
        hardware = facts.instance_types.get(item.instance_type)
        gate = spec.smoke.nodes if spec.smoke.enabled and spec.smoke.pool == item.name else 0
        free = item.max_size - gate
        if hardware and promised[item.name] > hardware.accelerator_count * free:
            rule = f"teams are guaranteed {promised[item.name]} GPUs, more than {free} nodes have"
            kept = f" ({gate} of {item.max_size} nodes must be free to validate a deployment)" if gate else ""
            fix = "Lower the guarantees under teams[].gpus (idle GPUs can be borrowed) or raise max_size."
            yield Problem(f"pools[{index}].max_size", item.max_size, rule + kept, fix)


def budgets(spec: StackSpec) -> Iterator[Problem]:
    """Team budgets fit into the budget of the stack."""
    total = sum(team.monthly_budget_usd for team in spec.teams)
    if total > spec.budget.monthly_usd:
        rule = (
            f"team budgets add up to {total:,.0f} USD, more than the stack's {spec.budget.monthly_usd:,.0f}"
        )
        yield Problem("budget.monthly_usd", spec.budget.monthly_usd, rule, "Raise it or lower team budgets.")


def smoke(spec: StackSpec) -> Iterator[Problem]:
    """The gate runs on a pool that exists and can hold it."""
    pool = next((item for item in spec.pools if item.name == spec.smoke.pool), None)
    if pool is None:
        fix = f"Pools are {', '.join(item.name for item in spec.pools)}."
        yield Problem("smoke.pool", spec.smoke.pool, "there is no such pool", fix)
    elif spec.smoke.nodes > pool.max_size:
        rule = f"pool {pool.name} has at most {pool.max_size} nodes"
        yield Problem(
            "smoke.nodes", spec.smoke.nodes, rule, "Lower smoke.nodes or raise the pool's max_size."
        )
    if "PASS" not in spec.smoke.accept:
        yield Problem("smoke.accept", list(spec.smoke.accept), "PASS must open the gate", "Add PASS.")


def smoke_schedule(spec: StackSpec) -> Iterator[Problem]:
    """Validations on a schedule repeat a gate that there is, at times that can be read, not all the time."""
    wanted = spec.smoke.schedule
    if wanted is None:
        return
    wrong = cron.problem(wanted)
    if wrong is not None:
        fix = 'Write minute, hour, day, month, day of the week, such as "0 5 * * 1", or null.'
        yield Problem("smoke.schedule", wanted, wrong, fix)
    elif cron.often(wanted):
        fix = "Name one minute; every run takes whole nodes."
        yield Problem("smoke.schedule", wanted, "more than once an hour", fix)
    if not spec.smoke.enabled:
        fix = "Enable the gate, or set smoke.schedule to null."
        yield Problem("smoke.schedule", wanted, "there is no gate to repeat: smoke.enabled is false", fix)


RULES: tuple[Rule, ...] = (
    region_and_zones,
    network_range,
    public_access,
    kubernetes_version,
    sizes,
    pool_hardware,
    repeated_names,
    lustre,
    quotas,
    budgets,
    smoke,
    smoke_schedule,
)
