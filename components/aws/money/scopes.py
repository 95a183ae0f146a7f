"""A budget of a stack, a team or a person, by the tags of its resources."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi
import pulumi_aws as aws

from components.aws.money.budget import WARNINGS
from components.base import Component
from infra.naming import TAG_PREFIX, sanitize

# Limit of a budget's name. Source: botocore 1.44.5 budgets/2016-10-20 BudgetName.
_NAME = 100
_USED_UP = (100.0, "ACTUAL")


class ScopeArgs(TypedDict):
    """A budget and its scope."""

    scope: str
    """stack, team or person."""
    value: str
    """The stack, the team or the person, as in the tag `trainstack:<scope>`."""
    monthly_usd: float
    over_budget: str
    """stop or warn."""
    emails: Sequence[str]
    """Addresses for warnings, one to ten."""


def scoped_budget(
    component: Component,
    name: str,
    args: ScopeArgs,
    *,
    stack: str,
    topic_arn: pulumi.Input[str],
    after: Sequence[pulumi.Resource],
) -> aws.budgets.Budget:
    """A monthly cost budget that sends mail and publishes to a topic when it is used up.

    Teams and people are counted inside their stack only: two stacks may have the same name. Tags count once
    the account that pays has activated them as cost allocation tags. Credits and refunds are left out: they
    run out, and then the same use costs money.
    """
    label = f"{stack}-{args['scope']}-{sanitize(args['value'])}" if args["scope"] != "stack" else stack
    return aws.budgets.Budget(
        f"{name}-{args['scope']}-{sanitize(args['value'])}",
        name=f"{sanitize(label, max_length=_NAME - 8)}-monthly",
        budget_type="COST",
        time_unit="MONTHLY",
        limit_amount=f"{args['monthly_usd']:.2f}",
        limit_unit="USD",
        metrics="UnblendedCost",
        filter_expression={"ands": [*_tagged(stack, args), _without_credits()]},
        notifications=[_warning(warning, args["emails"], topic_arn) for warning in WARNINGS],
        opts=component.child(pulumi.ResourceOptions(depends_on=list(after))),
    )


def _warning(
    warning: tuple[float, str], emails: Sequence[str], topic_arn: pulumi.Input[str]
) -> aws.budgets.BudgetNotificationArgsDict:
    """Mail at each threshold; the topic receives exceeded limits only, no forecasts."""
    threshold, kind = warning
    notification: aws.budgets.BudgetNotificationArgsDict = {
        "comparison_operator": "GREATER_THAN",
        "threshold": threshold,
        "threshold_type": "PERCENTAGE",
        "notification_type": kind,
        "subscriber_email_addresses": list(emails),
    }
    if (threshold, kind) == _USED_UP:
        notification["subscriber_sns_topic_arns"] = [topic_arn]
    return notification


def _tagged(stack: str, args: ScopeArgs) -> list[aws.budgets.BudgetFilterExpressionAndArgsDict]:
    wanted = {f"{TAG_PREFIX}:stack": stack, f"{TAG_PREFIX}:{args['scope']}": args["value"]}
    return [
        {"tags": {"key": key, "values": [value], "match_options": ["EQUALS"]}}
        for key, value in wanted.items()
    ]


def _without_credits() -> aws.budgets.BudgetFilterExpressionAndArgsDict:
    return {"not_": {"dimensions": {"key": "RECORD_TYPE", "values": ["Credit", "Refund"]}}}
