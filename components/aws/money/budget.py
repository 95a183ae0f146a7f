"""A budget that warns in time, and a monitor for unexpected spending."""

import json
from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.base import Component, Options
from infra.catalog import money
from infra.catalog.aws import facts
from infra.errors import UserError

# Percent of the limit already spent, and expected to be spent by the end of the month. AWS allows a budget
# ten notifications, and each ten addresses. Source: botocore 1.44.5 budgets/2016-10-20 Notification.
WARNINGS = ((50.0, "ACTUAL"), (80.0, "ACTUAL"), (100.0, "ACTUAL"), (100.0, "FORECASTED"))


class AwsBudgetArgs(TypedDict):
    """Limits, recipients of warnings, and the tag that separates costs."""

    monthly_limit_usd: float
    """Limit of the cost of the whole stack in a calendar month, in USD."""
    alert_emails: Sequence[str]
    """Addresses for warnings, one to ten; for more, use the address of a mailing list."""
    anomaly_threshold_usd: NotRequired[float]
    """Least unexpected spending, in USD, that is reported; without it there is no monitor."""
    stack_tag_key: str
    """Key of the tag that every resource of the stack carries."""
    stack_tag_value: str
    """Value of that tag."""
    further_tag_values: NotRequired[Sequence[str]]
    """Values of further stacks whose cost counts, too. Default: none."""


class AwsBudget(Component):
    """A monthly budget for the stack, and on demand an anomaly monitor; both send mail.

    A budget warns; it stops nothing. GPUs keep running past 100 %, and AWS's billing data is 8 to 24 hours
    old, so a runaway job costs up to a day before a warning. Spending is limited by the size of the pools and
    the quotas of the queues.

    The tag counts only once the account that pays has activated it as a cost allocation tag (Billing
    console, a day after first use), and not for the time before: until then the budget reads 0.

    AWS Budgets sends the mail itself. An SNS topic would add nothing: its subscribers must confirm a
    subscription, too.

    No budget monitors a team. Teams share nodes, so no resource that costs money carries a team's tag. Split
    splits nodes by pods, split cost allocation data with its tag `aws:eks:namespace`, is rows of the Cost and
    Usage Report (AWS Data Exports user guide, "Understanding split cost allocation data", read 2026-11-23);
    no page of AWS states that AWS Budgets reads them. Teams are limited by the hours of their jobs instead
    (`components.kubernetes.accounting`).

    The anomaly monitor watches the stack's tag (type CUSTOM), which only the management account of an
    organization, or an account in none, may do: "Cost monitors for linked accounts, cost allocation tags, and
    cost categories can only be created in the management account" (AWS Cost Management user guide, "Getting
    started with AWS Cost Anomaly Detection", read 2026-11-23). Monitors of type DIMENSIONAL watch a whole
    account and are limited to one per dimension: a second stack in the account could not have its own.
    """

    budget_name: pulumi.Output[str]
    """Name of the budget."""
    anomaly_monitor_arn: pulumi.Output[str] | None
    """None without an anomaly monitor."""

    def __init__(self, name: str, args: AwsBudgetArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        check(args)
        self.budget_name = self._budget(name, args).name
        threshold = args.get("anomaly_threshold_usd")
        self.anomaly_monitor_arn = None if threshold is None else self._monitor(name, args, threshold)
        self.register_declared()

    def _budget(self, name: str, args: AwsBudgetArgs) -> aws.budgets.Budget:
        return aws.budgets.Budget(
            f"{name}-budget",
            name=f"{name}-monthly",
            budget_type="COST",
            time_unit="MONTHLY",
            limit_amount=f"{args['monthly_limit_usd']:.2f}",
            limit_unit="USD",
            cost_filters=[
                {
                    "name": "TagKeyValue",
                    "values": [f"user:{args['stack_tag_key']}${value}" for value in _values(args)],
                }
            ],
            # Credits run out, and then the same usage costs money: they must not hide it.
            cost_types={"include_credit": False, "include_refund": False},
            notifications=[
                {
                    "comparison_operator": "GREATER_THAN",
                    "threshold": threshold,
                    "threshold_type": "PERCENTAGE",
                    "notification_type": kind,
                    "subscriber_email_addresses": list(args["alert_emails"]),
                }
                for threshold, kind in WARNINGS
            ],
            opts=self.child(),
        )

    def _monitor(self, name: str, args: AwsBudgetArgs, threshold_usd: float) -> pulumi.Output[str]:
        """The monitor, and its daily mail: AWS sends none sooner."""
        monitor = aws.costexplorer.AnomalyMonitor(
            f"{name}-anomalies",
            name=f"{name}-anomalies",
            monitor_type="CUSTOM",
            monitor_specification=monitored(args["stack_tag_key"], *_values(args)),
            opts=self.child(),
        )
        daily = f"{name}-anomalies-daily"
        aws.costexplorer.AnomalySubscription(
            daily,
            name=daily,
            frequency="DAILY",
            monitor_arn_lists=[monitor.arn],
            subscribers=[{"type": "EMAIL", "address": address} for address in args["alert_emails"]],
            threshold_expression={
                "dimension": {
                    "key": "ANOMALY_TOTAL_IMPACT_ABSOLUTE",
                    "match_options": ["GREATER_THAN_OR_EQUAL"],
                    "values": [f"{threshold_usd:g}"],
                }
            },
            opts=self.child(),
        )
        return monitor.arn


def _values(args: AwsBudgetArgs) -> list[str]:
    return [args["stack_tag_value"], *args.get("further_tag_values", ())]


def check(args: AwsBudgetArgs) -> None:
    """Raise UserError with everything that AWS would reject."""
    limits = {"monthly_limit_usd": args["monthly_limit_usd"]}
    if "anomaly_threshold_usd" in args:
        limits["anomaly_threshold_usd"] = args["anomaly_threshold_usd"]
    problems = [problem for path, usd in limits.items() for problem in money.amount_problems(path, usd)]
    problems += money.email_problems("alert_emails", args["alert_emails"], facts.limits["budget_emails"])
    if problems:
        raise UserError(problems)


def monitored(tag_key: str, *tag_values: str) -> str:
    """The filter of a CUSTOM monitor, with every field, as AWS returns it (otherwise it looks changed)."""
    return json.dumps(
        {
            "And": None,
            "CostCategories": None,
            "Dimensions": None,
            "Not": None,
            "Or": None,
            "Tags": {"Key": tag_key, "MatchOptions": None, "Values": list(tag_values)},
        }
    )
