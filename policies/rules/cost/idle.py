"""Idle pools."""

from collections.abc import Iterator

from policies import facts
from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.pools import NODE_GROUP, least_nodes, machines_of, template_of
from policies.stack import Stack

_ENDS = (
    "aws:budgets/budgetAction:BudgetAction",
    "aws:scheduler/schedule:Schedule",
    "aws:autoscaling/schedule:Schedule",
)
_PRODUCTION = ("production", "prod")


@CATALOG.rule_around(
    "MLS-COST-03",
    "medium",
    (NODE_GROUP,),
    "Nights and weekends are two thirds of a week, and idle GPUs cost as much as busy ones.",
    "Let the pool shrink to zero nodes, or stop it by a schedule or a budget action.",
    ("cloud-custodian offhours",),
)
def idle_gpus_end(group: Resource, stack: Stack) -> Iterator[Violation]:
    """Outside of production, a pool of GPUs shrinks to zero, or a schedule or budget action stops it."""
    machines = machines_of(group, template_of(group, stack))
    if not any(facts.gpu_type(machine) for machine in machines):
        raise NotApplicableError("its nodes have no GPU")
    if str(group.tags.get("environment")).lower() in _PRODUCTION:
        raise NotApplicableError("it is tagged as production")
    least = least_nodes(group)
    if least > 0 and not stack.all(*_ENDS):
        yield Violation(f"{least} nodes always run, and nothing stops them", "scalingConfig.minSize")
