"""A Slurm system from a spec: pools as partitions, teams as accounts with quotas and budgets."""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from infra.catalog import slurm_names as names
from infra.catalog.registry import CATALOGS
from infra.cost.rates import node_rate
from infra.errors import Problem, UserError, raise_all
from infra.slurm.machines import NodeHardware, machine
from infra.slurm.options import SystemOptions, option_problems
from infra.stackspec.layouts import ClusterLayout, PoolSpec
from infra.stackspec.purchases import CapacityBlock
from infra.stackspec.slurm.layout import SlurmLayout
from infra.stackspec.stack import StackSpec, TeamSpec

_HOURS_FIX: Final = (
    "Remove it, and reserve the partition for these hours yourself: scontrol create reservation ... "
    "Flags=DAILY or WEEKDAY."
)


@dataclass(frozen=True)
class Partition:
    """A pool as a partition with nodes `<name>-1` to `<name>-<nodes>`."""

    name: str
    machine_type: str
    machine: NodeHardware
    purchase: str
    purpose: str
    always: int
    """Nodes that never suspend."""
    nodes: int
    usd: float | None
    """Dollars per node-hour, the expected price of the catalog; None: unknown."""
    rank: int
    """Place in the order in which jobs should use pools, from 0."""
    own_queue: bool
    rdma: bool
    zones: tuple[str, ...]
    opens: datetime.datetime | None = None
    """Start of its capacity block."""
    closes: datetime.datetime | None = None
    """Time at which no job may run there any more: some minutes before the end of its capacity block."""

    @property
    def node_names(self) -> str:
        """All nodes as a host list."""
        return host_list(self.name, 1, self.nodes)


@dataclass(frozen=True)
class SlurmAccount:
    """A team as an account."""

    name: str
    team: str
    quotas: Mapping[str, int]
    """GPUs by partition."""
    share: float
    monthly_usd: float | None
    """Dollars per month after which jobs do not start; None: no limit."""
    monthly_gpu_hours: float | None
    """GPU-hours per month after which jobs do not start; None: no limit."""


@dataclass(frozen=True)
class SlurmSystem:
    """A Slurm system."""

    cluster: str
    options: SystemOptions
    partitions: tuple[Partition, ...]
    accounts: tuple[SlurmAccount, ...]
    idle_s: int
    """Seconds after which an idle node is suspended."""

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """GRES types of all partitions."""
        return tuple(sorted({one.machine.gpu_type for one in self.partitions if one.machine.gpus}))

    @property
    def default(self) -> Partition:
        """The partition of jobs that name none: the first in order, without those that jobs must name."""
        return min(self.partitions, key=lambda one: (one.own_queue, not one.machine.gpus, one.rank))


def host_list(pool: str, first: int, last: int) -> str:
    """Nodes of a pool as Slurm writes them: `l4-[1-8]`."""
    prefix = names.node_prefix(pool)
    return f"{prefix}{first}" if first == last else f"{prefix}[{first}-{last}]"


def system(spec: StackSpec, options: SystemOptions) -> SlurmSystem:
    """The system of a stack. Raises UserError with every value that Slurm cannot have."""
    layout = spec.layout
    if not isinstance(layout, ClusterLayout | SlurmLayout):
        rule, fix = (
            "has no pools of nodes of one cluster",
            "Use one with `layout.pools`, such as large-slurm.",
        )
        raise UserError([Problem("trainstack:profile", layout.profile, rule, fix, code="slurm-needs-pools")])
    teams = _team_problems(spec, layout.pools)
    problems = [*option_problems(options), *_pool_problems(spec, layout.pools), *teams]
    raise_all(problems)
    return SlurmSystem(
        cluster=spec.name,
        options=options,
        partitions=tuple(_partitions(spec, layout.pools)),
        accounts=tuple(_account(team) for team in spec.teams),
        idle_s=(layout.idle_minutes or 10) * 60,
    )


def _pool_problems(spec: StackSpec, pools: Sequence[PoolSpec]) -> Iterator[Problem]:
    for index, pool in enumerate(pools):
        path = f"layout.pools[{index}]"
        yield from names.partition_problems(f"{path}.name", pool.name)
        if machine(spec.cloud, pool.machine) is None:
            rule = "the catalog does not have its processors and memory, which a node line needs"
            fix = "Choose a type with a fixed ratio of both, such as m6i.4xlarge or n2-standard-16."
            yield Problem(f"{path}.machine", pool.machine, rule, fix, code="slurm-machine-unknown")
        if pool.hours is not None:
            rule = "hours of a pool are not supported with Slurm"
            yield Problem(f"{path}.hours", pool.hours.start, rule, _HOURS_FIX, code="slurm-hours-unsupported")
        if pool.teams is not None:
            rule, fix = "pools of some teams are not supported with Slurm", "Leave it out, and use quotas."
            yield Problem(f"{path}.teams", [*pool.teams], rule, fix, code="slurm-teams-unsupported")


def _team_problems(spec: StackSpec, pools: Sequence[PoolSpec]) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, team in enumerate(spec.teams):
        path = f"teams[{index}]"
        invalid = [*names.account_problems(f"{path}.name", team.name)]
        yield from invalid
        limited = spec.on.slurm_limits or not isinstance(spec.layout, SlurmLayout)
        if limited:
            yield from names.quota_problems(f"{path}.gpus", team.gpus)
        if team.monthly_usd is not None and team.over_budget == "stop":
            yield from _price_problems(spec, pools, path, team)
        if invalid:
            continue
        name = names.account(team.name)
        if name in seen:
            rule, fix = f"its account {name} is that of teams[{seen[name]}]", "Rename one of the two teams."
            yield Problem(f"{path}.name", team.name, rule, fix, code="slurm-account-twice")
        else:
            seen[name] = index


def _price_problems(
    spec: StackSpec, pools: Sequence[PoolSpec], path: str, team: TeamSpec
) -> Iterator[Problem]:
    """A budget in dollars needs a price of some pool that the team can use."""
    if all(node_rate(spec, pool) is None for pool in pools):
        rule = "no pool has a price in the catalog, so nothing would count"
        fix = "Use monthly_gpu_hours."
        yield Problem(f"{path}.monthly_usd", team.monthly_usd, rule, fix, code="slurm-budget-without-price")


def _partitions(spec: StackSpec, pools: Sequence[PoolSpec]) -> Iterator[Partition]:
    rates = {pool.name: node_rate(spec, pool) for pool in pools}
    ordered = _ordered(pools, {name: rate.usd for name, rate in rates.items() if rate})
    drain = datetime.timedelta(minutes=CATALOGS[spec.cloud].block_drain_minutes)
    for pool in pools:
        found, rate = machine(spec.cloud, pool.machine), rates[pool.name]
        assert found is not None
        block = pool.purchase if isinstance(pool.purchase, CapacityBlock) else None
        yield Partition(
            name=pool.name,
            machine_type=pool.machine,
            machine=found,
            purchase=pool.purchase.kind,
            purpose=pool.purpose,
            always=pool.min_nodes,
            nodes=pool.max_nodes,
            usd=rate.usd if rate else None,
            rank=ordered.index(pool.name),
            own_queue=pool.own_queue,
            rdma=pool.rdma,
            zones=pool.zones,
            opens=datetime.datetime.fromisoformat(block.starts) if block and block.starts else None,
            closes=datetime.datetime.fromisoformat(block.ends) - drain if block and block.ends else None,
        )


def _ordered(pools: Iterable[PoolSpec], usd: Mapping[str, float]) -> list[str]:
    """Names of pools as jobs should try them: by preference, prepaid ones first, then by price."""

    def key(pool: PoolSpec) -> tuple[int, bool, bool, float]:
        prepaid = pool.purchase.kind in ("reserved", "block")
        return pool.preference, not prepaid, pool.name not in usd, usd.get(pool.name, 0.0)

    return [pool.name for pool in sorted(pools, key=key)]


def _account(team: TeamSpec) -> SlurmAccount:
    stops = team.over_budget == "stop"
    return SlurmAccount(
        name=names.account(team.name),
        team=team.name,
        quotas={pool: gpus for pool, gpus in team.gpus.items() if gpus},
        share=team.weight,
        monthly_usd=team.monthly_usd if stops else None,
        monthly_gpu_hours=team.monthly_gpu_hours if stops else None,
    )
