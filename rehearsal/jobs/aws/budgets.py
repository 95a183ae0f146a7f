"""AWS Budgets for boto3: DescribeBudget; the spending is the cost of this month's training jobs.

Source: botocore 1.44.5 budgets/2016-10-20 (Budget, CalculatedSpend, Expression). The real service counts all
resources with the tags, some hours late and only once the tags are activated for it; here only jobs have a
price, at the catalog's list price and at once. A machine without a price costs nothing.
"""

import datetime
import time
from collections.abc import Mapping
from typing import Any

from infra.catalog.aws.jobs import jobs as catalog
from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws.authorization import authorise, context_of
from rehearsal.dataplane.aws.http import JsonService, Operation, Request, ServiceError
from rehearsal.dataplane.aws.iam_policies import AccessCheck
from rehearsal.jobs.aws.sagemaker.records import TrainingJobRecord, TrainingJobStore

_BUDGET = "aws:budgets/budget:Budget"
_HOUR_S = 3600.0
# Of the cost of what runs; credits and refunds are records of their own (Budgets user guide, filters).
_DIMENSIONS = {"RECORD_TYPE": "Usage"}


class Budgets(JsonService):
    """The budgets that exist, with what was spent."""

    target = "AWSBudgetServiceGateway"

    def __init__(self, state: State) -> None:
        self._state, self._jobs = state, TrainingJobStore(state)

    def operations(self) -> Mapping[str, Operation]:
        """See `JsonService`."""
        return {"DescribeBudget": self._describe}

    def _describe(self, request: Request, asked: dict[str, Any]) -> Mapping[str, Any]:
        account, name = str(asked.get("AccountId")), str(asked.get("BudgetName"))
        arn = f"arn:aws:budgets::{account}:budget/{name}"
        check = AccessCheck("budgets:ViewBudget", arn, context_of(request.region))
        authorise(self._state, request.caller, [check])
        found = [record for record in self._state.find(type=_BUDGET) if record.outputs.get("arn") == arn]
        if not found:
            raise ServiceError(
                "NotFoundException", f"Unable to get budget: {name} - the budget doesn't exist."
            )
        return {"Budget": self._described(found[0], name, account)}

    def _described(self, budget: Record, name: str, account: str) -> Mapping[str, Any]:
        inputs, now = budget.inputs, time.time()
        mine = (
            job
            for job in self._jobs.all()
            if job.account == account and counts(inputs.get("filterExpression") or {}, job.tags)
        )
        spent = sum(cost_usd(job, now) for job in mine)
        unit = str(inputs.get("limitUnit") or "USD")
        return {
            "BudgetName": name,
            "BudgetType": inputs.get("budgetType"),
            "TimeUnit": inputs.get("timeUnit"),
            "BudgetLimit": {"Amount": str(inputs.get("limitAmount")), "Unit": unit},
            "CalculatedSpend": {"ActualSpend": {"Amount": f"{spent:.6f}", "Unit": unit}},
        }


def counts(expression: Mapping[str, Any], tags: Mapping[str, str]) -> bool:
    """Return whether a budget's filter includes resources with these tags; an empty filter includes all."""
    for kind, inside in expression.items():
        match kind:
            case "ands":
                held = all(counts(one, tags) for one in inside)
            case "ors":
                held = any(counts(one, tags) for one in inside)
            case "not" | "not_":
                held = not counts(inside, tags)
            case "tags":
                held = tags.get(str(inside.get("key"))) in (inside.get("values") or ())
            case "dimensions":
                held = _DIMENSIONS.get(str(inside.get("key"))) in (inside.get("values") or ())
            case _:
                raise ServiceError("InvalidParameterException", f"the filter {kind} is not emulated")
        if not held:
            return False
    return True


def cost_usd(job: TrainingJobRecord, now: float) -> float:
    """Cost of a job in this month (UTC) until now, all machines together."""
    if job.started is None:
        return 0.0
    month = datetime.datetime.fromtimestamp(now, datetime.UTC).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    seconds = (job.ended or now) - max(job.started, month.timestamp())
    if (job.request.get("ResourceConfig") or {}).get("TrainingPlanArn"):
        return 0.0  # paid in advance ("upfront fee": botocore 1.44.5, DescribeTrainingPlanResponse)
    machine = str((job.request.get("ResourceConfig") or {}).get("InstanceType"))
    price = catalog.price(machine, job.region)
    return max(0.0, seconds) / _HOUR_S * job.count * (price.usd if price else 0.0)
