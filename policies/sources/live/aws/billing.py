"""Budgets, budget actions, and cost anomalies.

Shapes: internal/service/budgets/{budget,budget_action}.go (flattenNotifications, flattenCostFilters) and
internal/service/ce of terraform-provider-aws.
"""

from typing import Any

from policies.resource import UnknownValue
from policies.sources.live.mapping import Each, LiveKind, QueryRefusedError, Shape, View, same, shaped
from policies.sources.live.queries import ACCOUNT, ApiQuery, ApiRefusal

_BUDGETS, _NOTES = "budgets.DescribeBudgets", "budgets.DescribeNotificationsForBudget"
_SUBSCRIBERS = "budgets.DescribeSubscribersForNotification"
_VIEW = "budgets:ViewBudget"
_ALL = {"AccountId": ACCOUNT}
# Cost Explorer and Budgets have an endpoint in us-east-1 only (AWS General Reference, endpoints).
_HOME = "us-east-1"
QUERIES = (
    ApiQuery("budgets", "DescribeBudgets", "Budgets", given={**_ALL, "ShowFilterExpression": True},
             right=_VIEW, region=_HOME),
    ApiQuery("budgets", "DescribeNotificationsForBudget", "Notifications", given=_ALL, of=_BUDGETS,
             by={"BudgetName": "BudgetName"}, right=_VIEW, region=_HOME),
    ApiQuery("budgets", "DescribeSubscribersForNotification", "Subscribers", given=_ALL, of=_NOTES,
             by={"BudgetName": "asked.BudgetName", "Notification": "."}, right=_VIEW, region=_HOME),
    ApiQuery("budgets", "DescribeBudgetActionsForAccount", "Actions", given=_ALL, region=_HOME,
             right="budgets:DescribeBudgetActionsForAccount"),
    ApiQuery("ce", "GetAnomalyMonitors", "AnomalyMonitors", region=_HOME),
    ApiQuery("ce", "GetAnomalySubscriptions", "AnomalySubscriptions", region=_HOME),
)  # fmt: skip


def _notifications(view: View) -> Any:
    budget = {"BudgetName": view.at("BudgetName")}
    notes = view.look.every(_NOTES, budget)
    if isinstance(notes, ApiRefusal):
        raise QueryRefusedError(notes)
    return [_notification(view, budget, note, index) for index, note in enumerate(notes)] or None


_NOTE: Shape = {
    **same("ComparisonOperator", "NotificationType", "Threshold"),
    # The API omits the default.
    "thresholdType": lambda view: view.at("ThresholdType") or "PERCENTAGE",
}


def _notification(view: View, budget: Any, note: Any, index: int) -> dict[str, Any]:
    path = f"notifications[{index}]"
    found = view.look.every(_SUBSCRIBERS, {**budget, "Notification": note})
    made = shaped(view.below(note), _NOTE, path)
    for name, kind in (("subscriberEmailAddresses", "EMAIL"), ("subscriberSnsTopicArns", "SNS")):
        if isinstance(found, ApiRefusal):
            made[name] = UnknownValue(f"{path}.{name}", f"is not known: {found}")
        else:
            made[name] = [one.get("Address") for one in found if one.get("SubscriptionType") == kind]
    return made


def _filters(view: View) -> Any:
    found = view.at("CostFilters") or {}
    return [{"name": name, "values": values} for name, values in sorted(found.items())] or None


def _amount(key: str) -> Any:
    return lambda view: view.at(f"BudgetLimit.{key}")


KINDS = (
    LiveKind(
        "aws:budgets/budget:Budget",
        _BUDGETS,
        "{account}:{BudgetName}",
        {
            "accountId": "account",
            **same("BudgetType", "TimeUnit"),
            "costFilters": _filters,
            "filterExpression": lambda view: (
                UnknownValue("filterExpression", "is not read from an account")
                if view.at("FilterExpression")
                else None
            ),
            "limitAmount": _amount("Amount"),
            "limitUnit": _amount("Unit"),
            "name": "BudgetName",
            "notifications": _notifications,
        },
        name="{BudgetName}",
        arn="arn:{partition}:budgets::{account}:budget/{BudgetName}",
        regionless=True,
    ),
    LiveKind(
        "aws:budgets/budgetAction:BudgetAction",
        "budgets.DescribeBudgetActionsForAccount",
        "{account}:{ActionId}:{BudgetName}",
        {
            "accountId": "account",
            **same("ActionId", "ActionType", "ApprovalModel", "BudgetName", "Status"),
        },
        regionless=True,
    ),
    LiveKind(
        "aws:costexplorer/anomalyMonitor:AnomalyMonitor",
        "ce.GetAnomalyMonitors",
        "{MonitorArn}",
        {
            "arn": "MonitorArn",
            **same("MonitorDimension", "MonitorType"),
            "name": "MonitorName",
        },
        name="{MonitorName}",
        regionless=True,
    ),
    LiveKind(
        "aws:costexplorer/anomalySubscription:AnomalySubscription",
        "ce.GetAnomalySubscriptions",
        "{SubscriptionArn}",
        {
            "arn": "SubscriptionArn",
            "frequency": "Frequency",
            "monitorArnLists": "MonitorArnList",
            "name": "SubscriptionName",
            "subscribers": Each("Subscribers", same("Address", "Type")),
        },
        name="{SubscriptionName}",
        regionless=True,
    ),
)
