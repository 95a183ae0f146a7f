"""What may be spent, and who hears of it in time."""

from collections.abc import Iterator
from typing import Any

from policies.catalogue import CATALOGUE, About, Violation
from policies.resource import Resource
from policies.rules.accelerators import STARTING
from policies.rules.training import if_it_trains
from policies.stack import Stack

_AWS, _GCP = "aws:budgets/budget:Budget", "gcp:billing/budget:Budget"
_MONITOR, _SUBSCRIPTION = (
    "aws:costexplorer/anomalyMonitor:AnomalyMonitor",
    "aws:costexplorer/anomalySubscription:AnomalySubscription",
)
_BILLED = ("aws:eks/cluster:Cluster", *STARTING, _AWS, _GCP)


@CATALOGUE.rule_of_stack(
    About(
        "MLS-COST-01",
        "high",
        _BILLED,
        "A pool of GPUs that nobody watches spends a month's budget in a weekend.",
        "Add a budget that notifies an address that somebody reads at 80 % of its limit or earlier.",
        ("FinOps: budget management",),
    )
)
def somebody_hears_before_the_budget_is_spent(stack: Stack) -> Iterator[Violation]:
    """A stack for training has a budget that tells somebody in time."""
    yield from if_it_trains(stack, _unheard(stack))


def _unheard(stack: Stack) -> Iterator[Violation]:
    most, budgets = stack.settings.alert_at_percent, stack.all(_AWS, _GCP)
    if not budgets:
        yield Violation("it has no budget")
    for budget in budgets:
        heard = [percent for percent, to in _alerts(budget) if to]
        path = "notifications" if budget.kind == _AWS else "thresholdRules"
        if not heard:
            yield Violation("its budget tells nobody", path, resource=budget)
        elif min(heard) > most:
            said = f"its first alert is at {min(heard):g} %, later than {most:g} %"
            yield Violation(said, path, resource=budget)


def _alerts(budget: Resource) -> Iterator[tuple[float, bool]]:
    """(percent of the limit, whether anybody is told) of each alert on what was spent."""
    if budget.kind == _GCP:
        told = _told_by_google(budget.props.get("allUpdatesRule") or {})
        for _, rule in budget.items("thresholdRules"):
            if rule.get("spendBasis", "CURRENT_SPEND") == "CURRENT_SPEND":
                yield float(rule.get("thresholdPercent") or 0) * 100, told
        return
    for _, alert in budget.items("notifications"):
        if alert.get("notificationType") == "ACTUAL":
            yield _percent(alert, budget.props.get("limitAmount")), _told_by_amazon(alert)


def _percent(alert: Any, limit: Any) -> float:
    threshold = float(alert.get("threshold") or 0)
    if alert.get("thresholdType") == "ABSOLUTE_VALUE" and float(limit or 0) > 0:
        return 100 * threshold / float(limit)
    return threshold


def _told_by_amazon(alert: Any) -> bool:
    return bool(alert.get("subscriberEmailAddresses") or alert.get("subscriberSnsTopicArns"))


def _told_by_google(rule: Any) -> bool:
    """Without a rule, the administrators of the billing account get a mail."""
    if rule.get("disableDefaultIamRecipients") is not True:
        return True
    # A list with something in it names somebody, also where nobody knows yet how it is called.
    return bool(rule.get("monitoringNotificationChannels") or rule.get("pubsubTopic"))


@CATALOGUE.rule_of_stack(
    About(
        "MLS-COST-04",
        "medium",
        _BILLED,
        "A budget speaks when money is gone; a trend speaks days earlier. Accounts that are members of an "
        "organization may not watch a tag for anomalies, but a budget's forecast they may.",
        "Add an anomaly monitor with a subscription, or a notification on the forecast to the budget.",
        ("FinOps: anomaly management",),
    )
)
def somebody_hears_of_a_new_course(stack: Stack) -> Iterator[Violation]:
    """Somebody hears when spending on training leaves its course: of an anomaly, or of a forecast."""
    yield from if_it_trains(stack, _untold(stack))


def _untold(stack: Stack) -> Iterator[Violation]:
    subscribed = any(one.props.get("subscribers") for one in stack.all(_SUBSCRIPTION))
    if stack.all(_MONITOR) and subscribed:
        return
    if not any(_forecast(budget) for budget in stack.all(_AWS, _GCP)):
        yield Violation("nobody hears of an anomaly or a forecast")


def _forecast(budget: Resource) -> bool:
    """Whether a budget tells somebody that its limit will be passed."""
    if budget.kind == _GCP:
        rules = [rule for _, rule in budget.items("thresholdRules")]
        forecast = any(rule.get("spendBasis") == "FORECASTED_SPEND" for rule in rules)
        return forecast and _told_by_google(budget.props.get("allUpdatesRule") or {})
    return any(
        alert.get("notificationType") == "FORECASTED" and _told_by_amazon(alert)
        for _, alert in budget.items("notifications")
    )
