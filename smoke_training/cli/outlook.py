"""What a plan will do before it does it: phases, time, cost, checks, and where nothing is claimed (pure)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from smoke_training.phases import PHASE, Phase
from smoke_training.plan import Plan
from smoke_training.statistics.slowness import HALVED, TOLERATED
from smoke_training.statistics.straggler import NEGLIGIBLE_SLOWDOWN
from smoke_training.verdict import RULES, Rule

Zone = tuple[float, float]

# Between these values a check says neither "healthy" nor "faulty", in the unit of the check.
_ZONES: Mapping[str, Callable[[Plan], Zone]] = {
    "training.straggler": lambda plan: (NEGLIGIBLE_SLOWDOWN, plan.max_straggler_slowdown),
    "storage.write": lambda _plan: (TOLERATED, HALVED),
    "storage.read": lambda _plan: (TOLERATED, HALVED),
}


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """A run to come. Seconds are budgets of four CPU ranks on two cores; USD for all nodes together."""

    phases: tuple[Phase, ...]
    depth: str
    seconds: float
    """Of the phases together; a run ends sooner when it fails early."""
    limit_s: float
    """Of the whole run; past it the verdict is ERROR."""
    expected_usd: float | None
    limit_usd: float | None
    checks: tuple[Rule, ...]
    zones: Mapping[str, Zone]
    accept: tuple[str, ...]
    partial: bool


def outlook(plan: Plan) -> Outlook:
    """What a run of the plan amounts to."""
    names = plan.chosen_phases
    phases = tuple(PHASE[name] for name in names)
    seconds = sum(phase.seconds(plan.depth) for phase in phases)
    checks = tuple(rule for rule in RULES if rule.phase is None or rule.phase in names)
    return Outlook(
        phases=phases,
        depth=plan.depth,
        seconds=seconds,
        limit_s=plan.timeout_s,
        expected_usd=plan.cost_usd(seconds),
        limit_usd=plan.cost_usd(plan.timeout_s),
        checks=checks,
        zones={rule.id: _ZONES[rule.id](plan) for rule in checks if rule.id in _ZONES},
        accept=plan.accept,
        partial=plan.partial,
    )
