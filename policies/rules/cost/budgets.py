"""Budgets and their alerts."""

from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.accelerators import STARTING
from policies.rules.cost.budget_scope import counts
from policies.rules.training import if_it_trains
from policies.stack import Stack

_AWS, _GCP = "aws:budgets/budget:Budget", "gcp:billing/budget:Budget"
_MONITOR, _SUBSCRIPTION = (
    "aws:costexplorer/anomalyMonitor:AnomalyMonitor",
    "aws:costexplorer/anomalySubscription:AnomalySubscription",
)
_BILLED = ("aws:eks/cluster:Cluster", *STARTING, _AWS, _GCP)


@CATALOG.rule_of_stack(
    "MLS-COST-01",
    "high",
    _BILLED,
    "An unwatched pool of GPUs spends a month's budget in a weekend.",
    "Add a budget that notifies a monitored address at 80 % of its limit or earlier.",
    ("FinOps: budget management",),
)
def a_budget_alerts_in_time(stack: Stack) -> Iterator[Violation]:
    """A stack for training has a budget with an early alert, which also counts the stacks that rely on it."""
    yield from if_it_trains(stack, _late_alerts(stack))
    for tag in stack.settings.covered_tags:
        if not any(counts(budget, tag) for budget in stack.all(_AWS, _GCP)):
            yield Violation(f"no budget counts machines with the tag {tag}, whose stack has none")


def _late_alerts(stack: Stack) -> Iterator[Violation]:
    most, budgets = stack.settings.alert_at_percent, stack.all(_AWS, _GCP)
    if not budgets:
        _refer_to_another(stack)
        yield Violation("it has no budget")
    for budget in budgets:
        percents = [percent for percent, to in _alerts(budget) if to]
        path = "notifications" if budget.kind == _AWS else "thresholdRules"
        if not percents:
            yield Violation("its budget has no receiver", path, resource=budget)
        elif min(percents) > most:
            message = f"its first alert is at {min(percents):g} %, later than {most:g} %"
            yield Violation(message, path, resource=budget)


def _refer_to_another(stack: Stack) -> None:
    """Raise NotApplicableError if the settings name the stack whose budget counts this one.

    The configuration requires that stack to count the tag, and MLS-COST-09 requires it on the machines here.
    """
    settings = stack.settings
    if settings.budget_stack:
        why = f"the budget of {settings.budget_stack} must count its tag {settings.budget_tag}"
        raise NotApplicableError(f"{why}, and is judged there")


def _alerts(budget: Resource) -> Iterator[tuple[float, bool]]:
    """(percent of the limit, whether it has a receiver) of each alert on actual cost."""
    if budget.kind == _GCP:
        receiver = _google_receiver(budget.props.get("allUpdatesRule") or {})
        for _, rule in budget.items("thresholdRules"):
            if rule.get("spendBasis", "CURRENT_SPEND") == "CURRENT_SPEND":
                yield float(rule.get("thresholdPercent") or 0) * 100, receiver
        return
    for _, alert in budget.items("notifications"):
        if alert.get("notificationType") == "ACTUAL":
            yield _percent(alert, budget.props.get("limitAmount")), _aws_receiver(alert)


def _percent(alert: Any, limit: Any) -> float:
    threshold = float(alert.get("threshold") or 0)
    if alert.get("thresholdType") == "ABSOLUTE_VALUE" and float(limit or 0) > 0:
        return 100 * threshold / float(limit)
    return threshold


def _aws_receiver(alert: Any) -> bool:
    return bool(alert.get("subscriberEmailAddresses") or alert.get("subscriberSnsTopicArns"))


def _google_receiver(rule: Any) -> bool:
    """Return whether an alert has a receiver; by default the administrators of the billing account."""
    if rule.get("disableDefaultIamRecipients") is not True:
        return True
    # A list with an item has a receiver, also if its value is not known yet.
    return bool(rule.get("monitoringNotificationChannels") or rule.get("pubsubTopic"))


@CATALOG.rule_of_stack(
    "MLS-COST-04",
    "medium",
    _BILLED,
    "A budget alert comes after the money is spent; a trend is visible days earlier. Accounts that are "
    "members of an organization cannot monitor a tag for anomalies, but can use a budget's forecast.",
    "Add an anomaly monitor with a subscription, or a notification on the forecast to the budget.",
    ("FinOps: anomaly management",),
)
def spending_trends_raise_alerts(stack: Stack) -> Iterator[Violation]:
    """An alert reports unusual spending on training: an anomaly, or a forecast."""
    yield from if_it_trains(stack, _without_trend(stack))


def _without_trend(stack: Stack) -> Iterator[Violation]:
    subscribed = any(one.props.get("subscribers") for one in stack.all(_SUBSCRIPTION))
    if stack.all(_MONITOR) and subscribed:
        return
    budgets = stack.all(_AWS, _GCP)
    if not budgets:
        _refer_to_another(stack)
    if not any(map(_forecast, budgets)):
        yield Violation("no alert reports an anomaly or a forecast")


def _forecast(budget: Resource) -> bool:
    if budget.kind == _GCP:
        rules = [rule for _, rule in budget.items("thresholdRules")]
        forecast = any(rule.get("spendBasis") == "FORECASTED_SPEND" for rule in rules)
        return forecast and _google_receiver(budget.props.get("allUpdatesRule") or {})
    return any(
        alert.get("notificationType") == "FORECASTED" and _aws_receiver(alert)
        for _, alert in budget.items("notifications")
    )
