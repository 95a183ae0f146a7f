"""Rules of a layout with one cluster, on every cloud."""

from collections.abc import Callable, Collection, Iterable, Iterator

from infra.catalog import pools
from infra.catalog.kubernetes import kueue, limits, prometheus
from infra.errors import Problem, did_you_mean
from infra.naming import flavor_name
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.stack import StackSpec, TeamSpec

Rule = Callable[[StackSpec, ClusterLayout], Iterator[Problem]]


def kubernetes_version(_: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """The version has what the queues need."""
    yield from kueue.version_problems("layout.kubernetes_version", layout.kubernetes_version)


def zones_once(_: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Each zone is named once."""
    yield from pools.once_problems("layout.zones", layout.zones)
    for index, pool in enumerate(layout.pools):
        yield from pools.once_problems(f"layout.pools[{index}].zones", pool.zones)


def zones_of_pools(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Pools and the file system are in zones of the network."""
    fix = f"Use one of layout.zones: {', '.join(layout.zones)}."
    for index, pool in enumerate(layout.pools):
        path = f"layout.pools[{index}].zones"
        for at, zone in enumerate(pool.zones):
            if zone not in layout.zones:
                yield Problem(f"{path}[{at}]", zone, "not a zone of the stack", fix, code="zone-not-of-stack")
    shared = spec.data.shared_fs
    if shared is not None and shared.zone not in layout.zones:
        rule = "not a zone of the stack"
        yield Problem("data.shared_fs.zone", shared.zone, rule, fix, code="zone-not-of-stack")


def zone_of_rdma(_: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """A pool with RDMA is in one zone."""
    for index, pool in enumerate(layout.pools):
        if pool.rdma:
            yield from pools.rdma_zone_problems(f"layout.pools[{index}].zones", len(pool.zones))


def zone_of_reservation(_: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """A pool on reserved capacity is in one zone."""
    for index, pool in enumerate(layout.pools):
        if pool.purchase.kind in ("reserved", "block"):
            yield from pools.reserved_zone_problems(f"layout.pools[{index}].zones", len(pool.zones))


def sizes(_: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """The minimum size of a pool is not above its maximum."""
    for path, pool in layout.by_path.items():
        most_path = f"{path}.max_nodes"
        yield from pools.order_problems(f"{path}.min_nodes", pool.min_nodes, most_path, pool.max_nodes)


def pool_names(_: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Pools have unique names, one set of queues covers them all, and one is open to every job."""
    yield from kueue.name_problems("layout.pools", [pool.name for pool in layout.pools], flavor_name)
    yield from limits["kueue_flavors"].problems("layout.pools", len(layout.pools))
    own = [(pool.name, pool.own_queue) for pool in layout.pools]
    yield from kueue.own_queue_problems("layout.pools", own)


def weights(spec: StackSpec, _: ClusterLayout) -> Iterator[Problem]:
    """Weights of teams are accepted by Kueue."""
    for index, team in enumerate(spec.teams):
        yield from limits["kueue_weight"].problems(f"teams[{index}].weight", team.weight)


def guarantees(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Guarantees name pools that exist."""
    names = {pool.name for pool in layout.pools}
    for index, team in enumerate(spec.teams):
        for key, pool, count in _guarantees(team):
            if pool not in names:
                fix = f"Pools are {', '.join(sorted(names))}."
                yield Problem(f"teams[{index}].{key}.{pool}", count, "unknown pool", fix, code="unknown-pool")


def _guarantees(team: TeamSpec) -> Iterator[tuple[str, str, int]]:
    """Key, pool and number of each guarantee."""
    yield from (("gpus", pool, count) for pool, count in team.gpus.items())
    yield from (("shares", pool, count) for pool, count in team.shares.items())


def teams_of_pools(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Teams of a pool exist, have a queue for it, and no other team has a guarantee there."""
    known = [team.name for team in spec.teams]
    for index, pool in enumerate(layout.pools):
        if pool.teams is not None:
            yield from kueue.pool_team_problems(
                f"layout.pools[{index}]", pool.teams, known, own_queue=pool.own_queue
            )
            for at, team in enumerate(spec.teams):
                for key, name, count in _guarantees(team):
                    if name == pool.name and team.name not in pool.teams:
                        path, against = f"teams[{at}].{key}.{name}", f"layout.pools[{index}].teams"
                        rule = "the pool is for other teams"
                        fix = f"Leave it out, or add the team to {against}."
                        code = "guarantee-in-pool-of-others"
                        yield Problem(path, count, rule, fix, against=against, code=code)


def validated_pools(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """The gate runs on pools that exist and are large enough."""
    most = {pool.name: pool.max_nodes for pool in layout.pools}
    named = spec.smoke.pools or ()
    for index, name in enumerate(named):
        path = f"smoke.pools[{index}]"
        if name not in most:
            yield Problem(path, name, "unknown pool", f"Pools are {', '.join(most)}.", code="unknown-pool")
        elif name in named[:index]:
            rule, fix = "the pool is named twice", "Name each pool once."
            yield Problem(path, name, rule, fix, code="pool-named-twice")
    for name, nodes in spec.validated.items():
        yield from kueue.gate_problems("smoke.nodes", nodes, name, most[name])
    if spec.smoke.enabled and not spec.validated:
        fix = "Name pools, give one the purpose training, or set smoke.enabled to false."
        rule = "the gate has no pool to validate"
        yield Problem("smoke.pools", list(named) or None, rule, fix, code="gate-validates-nothing")


def alert_routes(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Addresses for a team's alerts need monitoring, and are unique."""
    for index, team in enumerate(spec.teams):
        path, addresses = f"teams[{index}].alert_emails", list(team.alert_emails)
        if addresses and layout.monitoring.kind == "none":
            rule = "no alert is sent without monitoring"
            fix = "Set layout.monitoring.kind to in_cluster, or remove the addresses."
            yield Problem(
                path, addresses, rule, fix, against="layout.monitoring.kind", code="alerts-not-monitored"
            )
        if len(set(addresses)) < len(addresses):
            rule, fix = "an address is named twice", "Remove the repeated one."
            yield Problem(path, addresses, rule, fix, code="address-named-twice")


def receivers(spec: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Names of receivers are unique, teams exist, and only services with regions have one."""
    wanted = () if layout.monitoring.kind == "none" else layout.monitoring.receivers
    teams = [team.name for team in spec.teams]
    for index, one in enumerate(wanted):
        path = f"layout.monitoring.receivers[{index}]"
        if one.name in (other.name for other in wanted[:index]):
            rule, fix = "two receivers have this name", "Name each receiver differently."
            yield Problem(f"{path}.name", one.name, rule, fix, code="receiver-named-twice")
        if one.team is not None and one.team not in teams:
            fix = did_you_mean(one.team, teams, f"Teams are {', '.join(teams)}.")
            rule = "is not a team of the stack"
            yield Problem(f"{path}.team", one.team, rule, fix, against="teams", code="unknown-team")
        if one.region != "us" and one.kind not in ("pagerduty", "opsgenie"):
            rule = f"{one.kind} has no region"
            fix = "Leave it out: the URL in the Secret names the server."
            yield Problem(
                f"{path}.region",
                one.region,
                rule,
                fix,
                against=f"{path}.kind",
                code="receiver-without-region",
            )
        if len(set(one.severities)) < len(one.severities):
            rule, fix = "a severity is named twice", "Remove the repeated one."
            yield Problem(f"{path}.severities", [*one.severities], rule, fix, code="severity-named-twice")


def monitoring_problems(
    spec: StackSpec, layout: ClusterLayout, pools_nodes: Iterable[prometheus.Nodes], system_gib: float | None
) -> Iterator[Problem]:
    """Prometheus has the memory for all its series; `system_gib`: of a node of the system pool, if known."""
    wanted = layout.monitoring
    if wanted.kind == "none":
        return
    system = prometheus.Nodes(layout.system_pool.max_nodes, prometheus.SYSTEM_CPUS)
    series = prometheus.series([system, *pools_nodes], len(spec.teams) + 2)
    if wanted.memory_gib is not None:
        yield from prometheus.memory_problems("layout.monitoring.memory_gib", wanted.memory_gib, series)
    if system_gib is not None:
        path, machine = "layout.system_pool.machine", layout.system_pool.machine
        limit_gib = wanted.memory_gib or prometheus.memory_gib(series)
        yield from prometheus.node_problems(path, machine, system_gib, limit_gib=limit_gib)


def idle_gpus(_: StackSpec, layout: ClusterLayout) -> Iterator[Problem]:
    """Detection of idle GPUs needs monitoring."""
    wanted = layout.idle_gpus
    if wanted is not None and layout.monitoring.kind == "none":
        rule = "without monitoring there are no GPU metrics, so idle GPUs are not detected"
        fix = "Set null, or layout.monitoring.kind to in_cluster."
        value, against = wanted.model_dump(), "layout.monitoring.kind"
        yield Problem("layout.idle_gpus", value, rule, fix, against=against, code="idle-gpus-not-monitored")


def gpu_problems(spec: StackSpec, without: Collection[str]) -> Iterator[Problem]:
    """No GPUs are guaranteed or validated in the pools `without` GPUs."""
    for index, team in enumerate(spec.teams):
        for key, pool, count in _guarantees(team):
            if pool in without:
                fix = "Leave it out: CPUs are shared by weight."
                rule = "the pool has no GPUs"
                yield Problem(f"teams[{index}].{key}.{pool}", count, rule, fix, code="pool-without-gpus")
    for pool in spec.validated:
        if pool in without:
            fix = "Validate pools with GPUs; the purpose of others is `data`."
            yield Problem("smoke.pools", pool, "the pool has no GPUs", fix, code="pool-without-gpus")


def unknown_pool_problems(layout: ClusterLayout, named: Iterable[str]) -> Iterator[Problem]:
    """The cloud's own settings of pools (`on.pools`) are for pools that exist."""
    names = [pool.name for pool in layout.pools]
    for name in named:
        if name not in names:
            rule, fix = "unknown pool", f"Pools are {', '.join(names)}."
            yield Problem(f"on.pools.{name}", name, rule, fix, code="unknown-pool")


def shared_pool_problems(
    spec: StackSpec, layout: ClusterLayout, shared: Collection[str]
) -> Iterator[Problem]:
    """Pools whose GPUs are `shared` are not validated, have queues of their own, and quotas in shares.

    Validations measure whole GPUs. In a common queue a job that requests a GPU would get the share, as the
    cheapest `nvidia.com/gpu`, and Kueue's fair sharing would weigh a share as a whole GPU: it adds up a
    resource over all pools of a queue (kubernetes-sigs/kueue issue 8902).
    """
    for pool in spec.validated:
        if pool in shared:
            fix = "Validate pools with whole GPUs."
            rule = "the pool has shared GPUs"
            yield Problem(
                "smoke.pools", pool, rule, fix, against=f"on.pools.{pool}", code="validated-gpus-shared"
            )
    for index, one in enumerate(layout.pools):
        if one.name in shared and not one.own_queue:
            path, sharing = f"layout.pools[{index}].own_queue", f"on.pools.{one.name}.sharing"
            rule = "shares of GPUs are never overflow of whole ones"
            fix = f"Set true; jobs select the pool by the queue {one.name}."
            yield Problem(path, False, rule, fix, against=sharing, code="sharing-without-own-queue")
    yield from _unit_problems(spec, layout, shared)


def _unit_problems(spec: StackSpec, layout: ClusterLayout, shared: Collection[str]) -> Iterator[Problem]:
    whole = {pool.name for pool in layout.pools} - set(shared)
    for index, team in enumerate(spec.teams):
        for pool, count in team.gpus.items():
            if pool in shared:
                path, sharing = f"teams[{index}].gpus.{pool}", f"on.pools.{pool}.sharing"
                rule, fix = "the pool's GPUs are shared", f"Guarantee shares: teams[{index}].shares.{pool}."
                yield Problem(path, count, rule, fix, against=sharing, code="whole-gpus-of-shared-pool")
        for pool, count in team.shares.items():
            if pool in whole:
                path, sharing = f"teams[{index}].shares.{pool}", f"on.pools.{pool}.sharing"
                rule = "the pool's GPUs are not shared"
                fix = f"Guarantee whole ones: teams[{index}].gpus.{pool}."
                yield Problem(path, count, rule, fix, against=sharing, code="shares-of-whole-gpus")


RULES: tuple[Rule, ...] = (
    kubernetes_version,
    zones_once,
    zones_of_pools,
    zone_of_rdma,
    zone_of_reservation,
    sizes,
    pool_names,
    weights,
    guarantees,
    teams_of_pools,
    validated_pools,
    alert_routes,
    receivers,
    idle_gpus,
)
