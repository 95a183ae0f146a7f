"""Pools that end when nobody works."""

from collections.abc import Iterator

from policies import facts
from policies.catalogue import CATALOGUE, About, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.pools import NODE_GROUP, least_nodes, machines_of, template_of
from policies.stack import Stack

_ENDS = (
    "aws:budgets/budgetAction:BudgetAction",
    "aws:scheduler/schedule:Schedule",
    "aws:autoscaling/schedule:Schedule",
)
_PRODUCTION = ("production", "prod")


@CATALOGUE.rule_around(
    About(
        "MLS-COST-03",
        "medium",
        (NODE_GROUP,),
        "Nights and weekends are two thirds of a week, and idle GPUs cost as much as busy ones.",
        "Let the pool shrink to no node, or end it by a schedule or a budget action.",
        ("cloud-custodian offhours",),
    )
)
def idle_gpus_end(group: Resource, stack: Stack) -> Iterator[Violation]:
    """Outside of production, a pool of GPUs can shrink to none, or a schedule or budget action ends it."""
    machines = machines_of(group, template_of(group, stack))
    if not any(facts.gpu_type(machine) for machine in machines):
        raise NotApplicableError("its nodes have no GPU")
    if str(group.tags.get("environment")).lower() in _PRODUCTION:
        raise NotApplicableError("it is tagged as production")
    least = least_nodes(group)
    if least > 0 and not stack.all(*_ENDS):
        yield Violation(f"{least} nodes always run, and nothing ends them", "scalingConfig.minSize")
