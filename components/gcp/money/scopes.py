"""A budget of a stack, a team or a person, by the labels of its resources."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.mail import mail_channels
from components.gcp.money.budget import LASTING_CREDITS, WARNINGS, CurrencyArgs, amount
from infra.catalog.gcp import facts
from infra.catalog.money import amount_problems, email_problems
from infra.errors import UserError
from infra.naming import TAG_PREFIX, sanitize

_NAME = 60  # pulumi-gcp 10.2.0, billing.Budget (display_name)


class ScopeArgs(TypedDict):
    """A budget and its scope."""

    scope: str
    """stack, team or person."""
    value: str
    """The stack, the team or the person, as in the label `trainstack-<scope>`."""
    monthly_usd: float
    """Its limit in a calendar month, in USD."""
    over_budget: str
    """stop or warn."""
    emails: Sequence[str]
    """Addresses for warnings, one to five."""


def budget_name(stack: str, scope: str, value: str) -> str:
    """The name of a budget in the billing account and in messages."""
    label = stack if scope == "stack" else f"{stack}-{scope}-{sanitize(value)}"
    return sanitize(f"{label}-monthly", max_length=_NAME)


def scoped_budget(
    component: Component,
    name: str,
    args: ScopeArgs,
    *,
    stack: str,
    billing_account: str,
    project_number: pulumi.Input[str],
    topic: pulumi.Input[str],
    currency: CurrencyArgs | None = None,
) -> gcp.billing.Budget:
    """A monthly budget that sends mail, and publishes the costs to a topic.

    A budget takes one label, so those of teams and people cannot name the stack as well: they cover the
    label in the whole project, which therefore holds one stack. Raises UserError with everything that
    Cloud Billing would reject.
    """
    path = f"{args['scope']} {args['value']}"
    problems = [*amount_problems(f"{path}: monthly_usd", args["monthly_usd"])]
    problems += email_problems(f"{path}: emails", args["emails"], facts.limits["budget_channels"])
    if problems:
        raise UserError(problems)
    own = f"{name}-{args['scope']}-{sanitize(args['value'])}"
    return gcp.billing.Budget(
        own,
        billing_account=billing_account,
        display_name=budget_name(stack, args["scope"], args["value"]),
        amount={"specified_amount": amount(args["monthly_usd"], currency)},
        budget_filter={
            "projects": [pulumi.Output.concat("projects/", project_number)],
            "labels": {f"{TAG_PREFIX}-{args['scope']}": args["value"]},
            "calendar_period": "MONTH",
            "credit_types_treatment": "INCLUDE_SPECIFIED_CREDITS",
            "credit_types": LASTING_CREDITS,
        },
        threshold_rules=[{"threshold_percent": share, "spend_basis": basis} for share, basis in WARNINGS],
        all_updates_rule={
            "pubsub_topic": topic,
            "schema_version": "1.0",
            "monitoring_notification_channels": [
                channel.name for channel in mail_channels(component, f"{own}-mail", args["emails"])
            ],
            "disable_default_iam_recipients": True,
            "enable_project_level_recipients": False,
        },
        opts=component.child(),
    )
