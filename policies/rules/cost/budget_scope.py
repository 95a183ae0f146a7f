"""Scope of budgets: tags of machines."""

from collections.abc import Iterator, Mapping
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.pools import template_of
from policies.stack import Stack

_AWS, _GCP = "aws:budgets/budget:Budget", "gcp:billing/budget:Budget"
_GROUP = "aws:eks/nodeGroup:NodeGroup"
_POOL, _GKE = "gcp:container/nodePool:NodePool", "gcp:container/cluster:Cluster"
_COMPUTE = "Amazon Elastic Compute Cloud - Compute"
# EKS sets it on every machine of a cluster (EKS User Guide, eks-using-tags, tag-resources-for-billing).
_BY_EKS = "aws:eks:cluster-name"


@CATALOG.rule_around(
    "MLS-COST-09",
    "high",
    (_GROUP, _POOL),
    "A budget with a tag filter shows no cost if the machines of a pool lack the tag: tags of a node"
    " group and of the provider are not applied to them.",
    "Set the budget's tag for instances in tagSpecifications of the launch template; on Google Cloud, in"
    " resourceLabels of the pool or its cluster.",
    ("EKS API Reference, TagResource: tags do not propagate", "EKS User Guide, launch-templates"),
)
def budgets_cover_the_pools(pool: Resource, stack: Stack) -> Iterator[Violation]:
    """The machines of a pool have the tag in the filter of a budget."""
    filters = stack.once(_filters, _AWS if pool.kind == _GROUP else _GCP)
    if {} in filters:
        return
    tags = _machine_tags(pool, stack) if pool.kind == _GROUP else _labels(pool, stack)
    seen = [wanted for wanted in filters if wanted and all(_has(tags, *one) for one in wanted.items())]
    if not seen:
        keys = sorted({key for wanted in filters for key in wanted or ()})
        what = (
            f"no budget covers its machines: they lack {', '.join(keys)}" if keys else "no budget covers it"
        )
        yield Violation(what, "launchTemplate" if pool.kind == _GROUP else "nodeConfig.resourceLabels")


def _filters(stack: Stack, kind: str) -> list[dict[str, tuple[Any, ...]] | None]:
    budgets, elsewhere = stack.all(kind), stack.settings.budget_tag
    if not budgets and elsewhere:
        key, _, value = elsewhere.partition("=")
        return [{key: (value,)}]
    if not budgets:
        raise NotApplicableError("the stack has no budget of its cloud")
    found: list[dict[str, tuple[Any, ...]] | None] = []
    for wanted in map(_wanted, budgets):
        if wanted not in found:
            found.append(wanted)
    return found


def counts(budget: Resource, tag: str) -> bool:
    """Return whether a budget counts machines with a tag, given as KEY=VALUE.

    Raises UndeterminedError for a filter that is not read.
    """
    key, _, value = tag.partition("=")
    wanted = _wanted(budget)
    return wanted is not None and all(_has({key: value}, *one) for one in wanted.items())


def _has(tags: Mapping[str, Any], key: str, values: tuple[Any, ...]) -> bool:
    return key in tags and (not values or tags[key] in values)


def _wanted(budget: Resource) -> dict[str, tuple[Any, ...]] | None:
    """The allowed values by tag in the filter of a budget; None if it does not cover machines."""
    if budget.kind == _GCP:
        labels = (budget.props.get("budgetFilter") or {}).get("labels") or {}
        return {key: (value,) for key, value in labels.items()}
    if budget.props.get("budgetType") != "COST":
        return None
    if budget.props.get("filterExpression"):
        raise UndeterminedError(f"the filterExpression of {budget.name} is not read")
    wanted: dict[str, tuple[Any, ...]] = {}
    for _, chosen in budget.items("costFilters"):
        values = tuple(chosen.get("values") or ())
        if chosen.get("name") == "Service" and _COMPUTE not in values:
            return None
        if chosen.get("name") == "TagKeyValue":
            for value in values:
                # `user:KEY$VALUE`, or one of AWS's own.
                key, _, name = str(value).removeprefix("user:").partition("$")
                wanted[key] = (*wanted.get(key, ()), name)
    return wanted


def _machine_tags(group: Resource, stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = {_BY_EKS: group.props.get("clusterName")}
    template = template_of(group, stack)
    for _, given in template.items("tagSpecifications") if template else ():
        if given.get("resourceType") == "instance":
            found |= given.get("tags") or {}
    return found


def _labels(pool: Resource, stack: Stack) -> dict[str, Any]:
    """Labels of a node pool and its cluster, which GKE sets on the machines."""
    cluster = stack.target(pool, "cluster", _GKE)
    found: dict[str, Any] = dict((cluster.props.get("resourceLabels") if cluster else None) or {})
    return found | ((pool.props.get("nodeConfig") or {}).get("resourceLabels") or {})
