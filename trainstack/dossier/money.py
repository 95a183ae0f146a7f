"""Cost of a stack by tier against its budget, and the choice of its GPUs (pure)."""

import re
from collections.abc import Sequence
from typing import Any

from infra import cost
from infra.cost.model import CostItem, UsageCost
from infra.stackspec.layouts import ClusterLayout, JobMachineSpec, PoolSpec, SmallLayout
from infra.stackspec.stack import StackSpec
from trainstack.advice import Advice, Run
from trainstack.advice.machines import OF_CLOUD
from trainstack.dossier.facts import Missing, StackFacts

_TIERS = (
    ("gpus", "GPU nodes and jobs", r"^(GPU pool|jobs on) "),
    (
        "nodes",
        "Other nodes, disks of nodes",
        r"^(CPU pool|system pool|login node|(root|boot) disks of|disks of notebooks)",
    ),
    ("storage", "Storage", r"(Lustre|Filestore|EFS|home director|bucket|disk of the monitoring)"),
    ("tracking", "Tracking of experiments", r"MLflow|Cloud SQL"),
    ("network", "Network", r"NAT|address|endpoint|load balancer|network"),
    ("base", "Control plane, keys and secrets", r"control plane|KMS|secret"),
)
_REST = ("other", "Everything else")


def cost_document(facts: StackFacts) -> dict[str, Any]:
    """US dollars per month: tiers with their items, sums, the budget, and what is not in the sums."""
    if facts.loaded is None:
        return {"known": False, "why": "the stack file cannot be read"}
    spec = facts.loaded.spec
    estimate = cost.estimate(spec, facts.at.date())
    old = {one.name for one in estimate.old(facts.at.date())}
    titles = {key: title for key, title, _ in _TIERS} | dict([_REST])
    rows: dict[str, list[CostItem]] = {key: [] for key in titles}
    for item in estimate.known:
        rows[tier_of(item.name)].append(item)
    budget = spec.budget.monthly_usd
    return {
        "known": True,
        "why": "",
        "budget_usd": budget,
        "minimum_usd": estimate.minimum,
        "expected_usd": estimate.expected,
        "maximum_usd": estimate.maximum,
        "expected_share_of_budget": estimate.expected / budget if budget else None,
        "over_budget": estimate.expected > budget,
        "tiers": [
            {
                "title": titles[key],
                "minimum_usd": sum(one.minimum or 0.0 for one in items),
                "expected_usd": sum(one.expected or 0.0 for one in items),
                "maximum_usd": sum(one.maximum or 0.0 for one in items),
                "items": [_item(one, old=one.name in old) for one in items],
            }
            for key, items in rows.items()
            if items
        ],
        "old_prices": len(old),
        "not_priced": [_use(one) for one in estimate.not_priced],
    }


def tier_of(item: str) -> str:
    """Key of the tier of a cost item, whose name can begin with that of its cluster and a colon."""
    what = re.sub(r"^[a-z0-9-]+: ", "", item)
    return next((key for key, _, form in _TIERS if re.search(form, what)), _REST[0])


def _item(item: CostItem, *, old: bool) -> dict[str, Any]:
    return {
        "name": item.name,
        "minimum_usd": item.minimum,
        "expected_usd": item.expected,
        "maximum_usd": item.maximum,
        "price_of": None if item.date is None else item.date.isoformat(),
        "old": old,
    }


def _use(use: UsageCost) -> dict[str, Any]:
    month = use.assumed.units * use.usd if use.assumed and use.usd is not None else None
    return {
        "name": use.name,
        "usd": use.usd,
        "unit": use.unit,
        "example_usd_per_month": month,
        "example_units": use.assumed.units if use.assumed else None,
        "example": use.assumed.text if use.assumed else "",
    }


def gpu_document(facts: StackFacts) -> dict[str, Any]:
    """Machines of the stack with their reasons, and what an example run costs on them and on others."""
    pools = [] if facts.loaded is None else _pools(facts)
    models = {one["gpu"] for one in pools if one["gpu"]}
    advice = facts.advice
    if isinstance(advice, Missing):
        return {"pools": pools, "known": False, "why": advice.why}
    asked = advice.question
    return {
        "pools": pools,
        "known": True,
        "why": "",
        "question": {
            "parameters": asked.parameters,
            "tokens": asked.tokens,
            "method": asked.method,
            "context": asked.context,
            "is_example": facts.is_example,
        },
        "runs": [] if advice.best is None else _runs(advice, advice.best, models),
        "excluded": [
            {
                "machine": one.machine.name,
                "gpu": one.machine.gpu,
                "why": one.why,
                "in_stack": one.machine.gpu in models,
            }
            for one in advice.lost
        ],
    }


def _runs(advice: Advice, best: Run, models: set[str]) -> list[dict[str, Any]]:
    return [
        {
            "machine": run.machine.name,
            "machines": run.count,
            "gpu": run.machine.gpu,
            "gpus": run.gpus,
            "method": run.way,
            "market": run.price.market.replace("_", " "),
            "hours": run.hours,
            "usd": run.usd,
            "usd_per_hour": run.price.usd,
            "times_the_price": run.usd / best.usd,
            "times_the_hours": run.hours / best.hours,
            "gb_per_gpu": run.gpu_gb,
            "in_stack": run.machine.gpu in models,
        }
        for run in (best, *advice.others)
    ]


def pools_of(spec: StackSpec) -> Sequence[PoolSpec | JobMachineSpec]:
    """Pools of nodes; without a cluster machines of jobs."""
    match spec.layout:
        case ClusterLayout(pools=found) | SmallLayout(machines=found):
            return found
    return ()


def _pools(facts: StackFacts) -> list[dict[str, Any]]:
    assert facts.loaded
    spec = facts.loaded.spec
    key = "pools" if hasattr(spec.layout, "pools") else "machines"
    types = {one.name: one for cloud in OF_CLOUD.values() for one in cloud.machines()}
    made = []
    for index, pool in enumerate(pools_of(spec)):
        machine = types.get(pool.machine.removeprefix("ml."))
        made.append(
            {
                "name": pool.name,
                "machine": pool.machine,
                "gpu": machine.gpu if machine else "",
                "gpus_per_machine": machine.gpus if machine else 0,
                "purchase": pool.purchase.kind.replace("_", " "),
                "max_machines": pool.max_nodes,
                "why_machine": _reason(facts, f"layout.{key}[{index}].machine"),
                "why_purchase": _reason(facts, f"layout.{key}[{index}].purchase.kind"),
            }
        )
    return made


def _reason(facts: StackFacts, path: str) -> str:
    assert facts.loaded
    return next((one.origin.reason or "" for one in facts.loaded.explain(path)), "")
