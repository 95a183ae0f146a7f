"""Budgets and anomaly detection. Source: AWS Budgets and Cost Explorer API References."""

from collections.abc import Iterator

from infra.rehearsal.aws.site import Hooks, Site, known, refuse
from infra.rehearsal.model import CheckFailure, Properties

_UNITS = ("DAILY", "MONTHLY", "QUARTERLY", "ANNUALLY")
_MONITORS = "costexplorer/anomalyMonitor:AnomalyMonitor"
# An account has at most one monitor over its services; source: Cost Explorer quotas.
_DIMENSIONAL_LIMIT = 1
_SUBSCRIBERS_LIMIT = 10


def _check_budget(inputs: Properties) -> Iterator[CheckFailure]:
    unit, amount = inputs.get("timeUnit"), inputs.get("limitAmount")
    if isinstance(unit, str) and unit not in _UNITS:
        yield CheckFailure("timeUnit", f"InvalidParameterException: must be one of {', '.join(_UNITS)}")
    try:
        if known(amount) and float(str(amount)) <= 0:
            yield CheckFailure("limitAmount", f"InvalidParameterException: must be above 0, not {amount}")
    except ValueError:
        yield CheckFailure("limitAmount", f"InvalidParameterException: {amount} is no amount")
    for index, notice in enumerate(inputs.get("notifications") or []):
        path = f"notifications[{index}]"
        people = notice.get("subscriberEmailAddresses"), notice.get("subscriberSnsTopicArns")
        if not any(people):
            yield CheckFailure(
                path, "InvalidParameterException: a notification needs an email address or SNS topic"
            )
        if isinstance(people[0], list) and len(people[0]) > _SUBSCRIBERS_LIMIT:
            yield CheckFailure(
                f"{path}.subscriberEmailAddresses",
                f"at most {_SUBSCRIBERS_LIMIT} email addresses per notification",
            )


def _check_monitor(inputs: Properties) -> Iterator[CheckFailure]:
    kind = inputs.get("monitorType")
    needed = {"DIMENSIONAL": "monitorDimension", "CUSTOM": "monitorSpecification"}
    for name, prop in needed.items():
        if kind == name and prop not in inputs:
            yield CheckFailure(prop, f"ValidationException: monitor type {name} needs {prop}")
        if isinstance(kind, str) and kind != name and prop in inputs:
            yield CheckFailure(prop, f"ValidationException: monitor type {kind} takes no {prop}")


def _admit_monitor(site: Site, inputs: Properties) -> None:
    if inputs.get("monitorType") != "DIMENSIONAL" or site.preview:
        return
    others = [one for one in site.others(_MONITORS) if one.outputs.get("monitorType") == "DIMENSIONAL"]
    if len(others) >= _DIMENSIONAL_LIMIT:
        raise refuse(
            "LimitExceededException",
            "Limit exceeded on dimensional spend monitor creation",
            "monitorType",
            f"{others[0].urn or others[0].id} is the account's one; use a CUSTOM monitor.",
        )


def _check_subscription(inputs: Properties) -> Iterator[CheckFailure]:
    frequency = inputs.get("frequency")
    for index, subscriber in enumerate(inputs.get("subscribers") or []):
        if subscriber.get("type") == "SNS" and known(frequency) and frequency != "IMMEDIATE":
            yield CheckFailure(
                f"subscribers[{index}].type",
                f"ValidationException: SNS needs frequency IMMEDIATE, not {frequency}",
            )
        if subscriber.get("type") == "EMAIL" and frequency == "IMMEDIATE":
            yield CheckFailure(
                f"subscribers[{index}].type", "ValidationException: EMAIL needs frequency DAILY or WEEKLY"
            )


HOOKS = {
    "budgets/budget:Budget": Hooks(check=_check_budget),
    _MONITORS: Hooks(check=_check_monitor, admit=_admit_monitor),
    "costexplorer/anomalySubscription:AnomalySubscription": Hooks(check=_check_subscription),
}
