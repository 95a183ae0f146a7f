"""The ledger of GPU-hours of a stack: teams, prices and budgets."""

from collections.abc import Mapping

from components.kubernetes.accounting.gpu_ledger import BudgetArgs, GpuLedger, GpuLedgerArgs, LedgerTeamArgs
from components.kubernetes.monitoring.names import PROMETHEUS_URL
from components.kubernetes.queueing.kueue import GATE_NAMESPACE
from components.kubernetes.queueing.queues import Queueing
from components.kubernetes.queueing.quotas import GPU
from infra.cost.rates import gpu_shares
from infra.naming import flavor_name, team_namespace
from infra.stackspec import StackSpec
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.stack import TeamSpec
from stacks.parts import Cluster, NodePool

# Hours of validations count like a team's, so that the sum of all ledgers is the total allocation.
VALIDATION = "(validation)"


def gpu_ledger(
    spec: StackSpec,
    *,
    cluster: Cluster,
    pools: Mapping[str, NodePool],
    queueing: Queueing,
    image: str,
    shares: Mapping[str, int],
    measured: bool,
) -> GpuLedger:
    """Declare the ledger, after the namespaces with its data."""
    teams = [_team(team) for team in spec.teams]
    if spec.smoke.enabled:
        teams.append({"name": VALIDATION, "namespace": GATE_NAMESPACE})
    args: GpuLedgerArgs = {"teams": teams, "prices": _prices(pools, shares), "image": image}
    if shares:
        args["shares"] = shares
    if measured:
        args["prometheus"] = PROMETHEUS_URL
    return GpuLedger(f"{spec.name}-ledger", args, cluster.after(queueing))


def _team(team: TeamSpec) -> LedgerTeamArgs:
    made: LedgerTeamArgs = {"name": team.name, "namespace": team_namespace(team.name)}
    if team.monthly_usd is None and team.monthly_gpu_hours is None:
        return made
    budget: BudgetArgs = {
        "stop": team.over_budget == "stop",
        "exempt": [
            {
                "kind": row.kind,
                "name": row.name,
                "reason": row.reason,
                "approved_by": row.approved_by,
                "last_day": row.last_day,
            }
            for row in team.budget_exempt
        ],
    }
    if team.monthly_usd is not None:
        budget["usd"] = team.monthly_usd
    if team.monthly_gpu_hours is not None:
        budget["gpu_hours"] = team.monthly_gpu_hours
    return {**made, "budget": budget}


def shares_of(spec: StackSpec, layout: ClusterLayout) -> dict[str, int]:
    """Shares of a GPU by flavor, where GPUs are shared."""
    counts = {flavor_name(pool.name): gpu_shares(spec, pool) for pool in layout.pools}
    return {name: count for name, count in counts.items() if count > 1}


def _prices(pools: Mapping[str, NodePool], shares: Mapping[str, int]) -> Mapping[str, Mapping[str, float]]:
    """The expected price of a node divided by its GPUs that pods can have.

    For reserved nodes, it is the price whether or not they run. Pools without a price are left out.
    """
    return {
        flavor_name(name): {GPU: pool.usd_per_hour / pool.offer["gpus"] * shares.get(flavor_name(name), 1)}
        for name, pool in pools.items()
        if pool.offer["gpus"] and pool.usd_per_hour is not None
    }
