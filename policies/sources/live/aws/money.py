"""Budgets, what they do, and anomalies of cost.

Shapes: internal/service/budgets/{budget,budget_action}.go (flattenNotifications, flattenCostFilters) and
internal/service/ce of terraform-provider-aws.
"""

from typing import Any

from policies.resource import Unknown
from policies.sources.live.form import Each, Kind, RefusedError, Shape, View, shaped
from policies.sources.live.question import ACCOUNT, Question, Refusal

_BUDGETS, _NOTES = "budgets.DescribeBudgets", "budgets.DescribeNotificationsForBudget"
_TOLD = "budgets.DescribeSubscribersForNotification"
_VIEW = "budgets:ViewBudget"
_ALL = {"AccountId": ACCOUNT}
# Cost Explorer and Budgets answer in us-east-1 only (AWS General Reference, endpoints).
_HOME = "us-east-1"
QUESTIONS = (
    Question("budgets", "DescribeBudgets", "Budgets", given={**_ALL, "ShowFilterExpression": True},
             right=_VIEW, region=_HOME),
    Question("budgets", "DescribeNotificationsForBudget", "Notifications", given=_ALL, of=_BUDGETS,
             by={"BudgetName": "BudgetName"}, right=_VIEW, region=_HOME),
    Question("budgets", "DescribeSubscribersForNotification", "Subscribers", given=_ALL, of=_NOTES,
             by={"BudgetName": "asked.BudgetName", "Notification": "."}, right=_VIEW, region=_HOME),
    Question("budgets", "DescribeBudgetActionsForAccount", "Actions", given=_ALL, region=_HOME,
             right="budgets:DescribeBudgetActionsForAccount"),
    Question("ce", "GetAnomalyMonitors", "AnomalyMonitors", region=_HOME),
    Question("ce", "GetAnomalySubscriptions", "AnomalySubscriptions", region=_HOME),
)  # fmt: skip


def _notifications(view: View) -> Any:
    """Each with whom it tells."""
    budget = {"BudgetName": view.at("BudgetName")}
    notes = view.look.every(_NOTES, budget)
    if isinstance(notes, Refusal):
        raise RefusedError(notes)
    return [_notification(view, budget, note, index) for index, note in enumerate(notes)] or None


_NOTE: Shape = {
    "comparisonOperator": "ComparisonOperator",
    "notificationType": "NotificationType",
    "threshold": "Threshold",
    # The API leaves out its default.
    "thresholdType": lambda view: view.at("ThresholdType") or "PERCENTAGE",
}


def _notification(view: View, budget: Any, note: Any, index: int) -> dict[str, Any]:
    path = f"notifications[{index}]"
    told = view.look.every(_TOLD, {**budget, "Notification": note})
    made = shaped(view.below(note), _NOTE, path)
    for name, kind in (("subscriberEmailAddresses", "EMAIL"), ("subscriberSnsTopicArns", "SNS")):
        if isinstance(told, Refusal):
            made[name] = Unknown(f"{path}.{name}", f"is not known: {told}")
        else:
            made[name] = [one.get("Address") for one in told if one.get("SubscriptionType") == kind]
    return made


def _filters(view: View) -> Any:
    found = view.at("CostFilters") or {}
    return [{"name": name, "values": values} for name, values in sorted(found.items())] or None


def _amount(key: str) -> Any:
    return lambda view: view.at(f"BudgetLimit.{key}")


KINDS = (
    Kind(
        "aws:budgets/budget:Budget",
        _BUDGETS,
        "{account}:{BudgetName}",
        {
            "accountId": "account",
            "budgetType": "BudgetType",
            "costFilters": _filters,
            "filterExpression": lambda view: (
                Unknown("filterExpression", "is not read from an account")
                if view.at("FilterExpression")
                else None
            ),
            "limitAmount": _amount("Amount"),
            "limitUnit": _amount("Unit"),
            "name": "BudgetName",
            "notifications": _notifications,
            "timeUnit": "TimeUnit",
        },
        name="{BudgetName}",
        arn="arn:{partition}:budgets::{account}:budget/{BudgetName}",
        everywhere=True,
    ),
    Kind(
        "aws:budgets/budgetAction:BudgetAction",
        "budgets.DescribeBudgetActionsForAccount",
        "{account}:{ActionId}:{BudgetName}",
        {
            "accountId": "account",
            "actionId": "ActionId",
            "actionType": "ActionType",
            "approvalModel": "ApprovalModel",
            "budgetName": "BudgetName",
            "status": "Status",
        },
        everywhere=True,
    ),
    Kind(
        "aws:costexplorer/anomalyMonitor:AnomalyMonitor",
        "ce.GetAnomalyMonitors",
        "{MonitorArn}",
        {
            "arn": "MonitorArn",
            "monitorDimension": "MonitorDimension",
            "monitorType": "MonitorType",
            "name": "MonitorName",
        },
        name="{MonitorName}",
        everywhere=True,
    ),
    Kind(
        "aws:costexplorer/anomalySubscription:AnomalySubscription",
        "ce.GetAnomalySubscriptions",
        "{SubscriptionArn}",
        {
            "arn": "SubscriptionArn",
            "frequency": "Frequency",
            "monitorArnLists": "MonitorArnList",
            "name": "SubscriptionName",
            "subscribers": Each("Subscribers", {"address": "Address", "type": "Type"}),
        },
        name="{SubscriptionName}",
        everywhere=True,
    ),
)
