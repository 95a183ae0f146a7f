"""Money: budgets that warn in time, and a monitor for unexpected spending."""

import json
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import Account, current_account
from components.aws.encryption import encryption_key
from components.base import Component
from components.ordering import after
from infra.catalog.aws import money
from infra.errors import UserError
from infra.naming import sanitize

# Percent of the limit already spent, and expected to be spent by the end of the month. AWS allows a budget
# five notifications, and each one topic and ten addresses. Source: AWS Budgets API reference, "CreateBudget".
WARNINGS = ((50.0, "ACTUAL"), (80.0, "ACTUAL"), (100.0, "ACTUAL"), (100.0, "FORECASTED"))

# The services that publish to the topic: AWS Budgets and Cost Anomaly Detection.
PUBLISHERS = ("budgets.amazonaws.com", "costalerts.amazonaws.com")


class AwsBudgetArgs(TypedDict):
    """Limits, recipients of warnings, and the tags that separate costs."""

    monthly_limit_usd: float
    """What the whole stack may cost in a calendar month, in USD."""
    teams: Mapping[str, float]
    """What each team may cost in a calendar month, in USD, by team name (the value of the team's tag)."""
    alert_emails: Sequence[str]
    """Addresses that are warned, at most ten; for more, use the address of a mailing list."""
    anomaly_threshold_usd: NotRequired[float]
    """Least unexpected spending, in USD, that is reported; without it nothing watches for any."""
    stack_tag_key: str
    stack_tag_value: str
    """The tag every resource of the stack carries."""
    team_tag_key: str
    """The tag whose value is a team's name."""


class AwsBudget(Component):
    """A monthly budget for the stack and each team, on demand an anomaly monitor, one encrypted topic.

    A budget warns; it stops nothing. GPUs go on running past 100 %, and AWS's billing data is 8 to 24 hours
    old, so a runaway job costs up to a day before a warning. What limits spending is the size of
    the pools and the quotas of the queues.

    Both tags count only once the account that pays has activated them as cost allocation tags (Billing
    console, a day after first use), and not for the time before. A team's budget sees what carries its tag:
    nodes that teams share have no team's tag, and are divided by the usage of the queues instead.

    The anomaly monitor watches the stack's tag (type CUSTOM), which only the management account of an
    organization, or an account in none, may do: "Cost monitors for linked accounts, cost allocation tags, and
    cost categories can only be created in the management account" (AWS Cost Management user guide, "Getting
    started with AWS Cost Anomaly Detection", read 2026-11-23). Monitors of type DIMENSIONAL watch a whole
    account and are limited to one per dimension: a second stack in the account could not have its own.
    """

    topic_arn: pulumi.Output[str]
    budget_names: pulumi.Output[Sequence[str]]
    anomaly_monitor_arn: pulumi.Output[str] | None
    """None where nothing watches for anomalies."""

    def __init__(self, name: str, args: AwsBudgetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        check(args)
        self.topic_arn = self._topic(name)
        budgets = [self._stack_budget(name, args)]
        budgets += [
            self._team_budget(name, args, team, limit) for team, limit in sorted(args["teams"].items())
        ]
        self.budget_names = pulumi.Output.all(*[budget.name for budget in budgets])
        threshold = args.get("anomaly_threshold_usd")
        self.anomaly_monitor_arn = None if threshold is None else self._monitor(name, args, threshold)
        self.register_outputs(
            {
                "topic_arn": self.topic_arn,
                "budget_names": self.budget_names,
                "anomaly_monitor_arn": self.anomaly_monitor_arn,
            }
        )

    def _topic(self, name: str) -> pulumi.Output[str]:
        """The topic, usable once its policy lets the services publish: they test it when a budget is made."""
        account = current_account(self)
        key = encryption_key(
            self,
            f"{name}-alerts",
            account=account,
            purpose=f"Cost alerts of {name} on their way to subscribers",
            statements=publishers_may_encrypt,
        )
        topic = aws.sns.Topic(f"{name}-alerts-topic", kms_master_key_id=key.arn, opts=self.child())
        policy = aws.sns.TopicPolicy(
            f"{name}-alerts-policy",
            arn=topic.arn,
            policy=pulumi.Output.all(topic.arn, account).apply(
                lambda known: topic_policy(known[0], known[1])
            ),
            opts=self.child(),
        )
        return after(topic.arn, [policy])

    def _stack_budget(self, name: str, args: AwsBudgetArgs) -> aws.budgets.Budget:
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
                    "values": [f"user:{args['stack_tag_key']}${args['stack_tag_value']}"],
                }
            ],
            # Credits run out, and then the same usage costs money: they must not hide it.
            cost_types={"include_credit": False, "include_refund": False},
            notifications=self._notifications(args),
            opts=self.child(),
        )

    def _team_budget(self, name: str, args: AwsBudgetArgs, team: str, limit_usd: float) -> aws.budgets.Budget:
        # An expression: several tags in `cost_filters` mean "or", the team's part of this stack needs "and".
        return aws.budgets.Budget(
            f"{name}-budget-{sanitize(team)}",
            name=f"{name}-team-{sanitize(team)}-monthly",
            budget_type="COST",
            time_unit="MONTHLY",
            limit_amount=f"{limit_usd:.2f}",
            limit_unit="USD",
            filter_expression={
                "ands": [
                    {"tags": {"key": args["stack_tag_key"], "values": [args["stack_tag_value"]]}},
                    {"tags": {"key": args["team_tag_key"], "values": [team]}},
                    {"not_": {"dimensions": {"key": "RECORD_TYPE", "values": ["Credit", "Refund"]}}},
                ]
            },
            metrics="UnblendedCost",
            notifications=self._notifications(args),
            opts=self.child(),
        )

    def _notifications(self, args: AwsBudgetArgs) -> list[aws.budgets.BudgetNotificationArgsDict]:
        return [
            {
                "comparison_operator": "GREATER_THAN",
                "threshold": threshold,
                "threshold_type": "PERCENTAGE",
                "notification_type": kind,
                "subscriber_sns_topic_arns": [self.topic_arn],
                "subscriber_email_addresses": list(args["alert_emails"]),
            }
            for threshold, kind in WARNINGS
        ]

    def _monitor(self, name: str, args: AwsBudgetArgs, threshold_usd: float) -> pulumi.Output[str]:
        """The monitor and who hears of it: the topic at once, people once a day (AWS mails no sooner)."""
        monitor = aws.costexplorer.AnomalyMonitor(
            f"{name}-anomalies",
            name=f"{name}-anomalies",
            monitor_type="CUSTOM",
            monitor_specification=monitored(args["stack_tag_key"], args["stack_tag_value"]),
            opts=self.child(),
        )
        now, daily = f"{name}-anomalies-now", f"{name}-anomalies-daily"
        emails = list(args["alert_emails"])
        self._subscribe(now, threshold_usd, "IMMEDIATE", monitor, {"SNS": [self.topic_arn]})
        if emails:
            self._subscribe(daily, threshold_usd, "DAILY", monitor, {"EMAIL": emails})
        return monitor.arn

    def _subscribe(
        self,
        name: str,
        threshold_usd: float,
        frequency: str,
        monitor: aws.costexplorer.AnomalyMonitor,
        subscribers: Mapping[str, Sequence[pulumi.Input[str]]],
    ) -> None:
        aws.costexplorer.AnomalySubscription(
            name,
            name=name,
            frequency=frequency,
            monitor_arn_lists=[monitor.arn],
            subscribers=[
                {"type": kind, "address": address}
                for kind, addresses in subscribers.items()
                for address in addresses
            ],
            threshold_expression={
                "dimension": {
                    "key": "ANOMALY_TOTAL_IMPACT_ABSOLUTE",
                    "match_options": ["GREATER_THAN_OR_EQUAL"],
                    "values": [f"{threshold_usd:g}"],
                }
            },
            opts=self.child(),
        )


def check(args: AwsBudgetArgs) -> None:
    """Raise UserError with everything AWS would refuse."""
    limits = {"monthly_limit_usd": args["monthly_limit_usd"]}
    limits |= {f"teams.{team}": limit for team, limit in args["teams"].items()}
    if "anomaly_threshold_usd" in args:
        limits["anomaly_threshold_usd"] = args["anomaly_threshold_usd"]
    problems = [problem for path, usd in limits.items() for problem in money.amount_problems(path, usd)]
    problems += money.email_problems("alert_emails", args["alert_emails"])
    if problems:
        raise UserError(problems)


def monitored(tag_key: str, tag_value: str) -> str:
    """What a CUSTOM monitor watches, with every field, as AWS returns it (otherwise it looks changed)."""
    return json.dumps(
        {
            "And": None,
            "CostCategories": None,
            "Dimensions": None,
            "Not": None,
            "Or": None,
            "Tags": {"Key": tag_key, "MatchOptions": None, "Values": [tag_value]},
        }
    )


def publishers_may_encrypt(account: Account) -> list[Mapping[str, object]]:
    """An encrypted topic is silent unless its publishers may use its key, too."""
    return [
        {
            "Sid": "CostServicesEncryptAlerts",
            "Effect": "Allow",
            "Principal": {"Service": list(PUBLISHERS)},
            "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:SourceAccount": account.id}},
        }
    ]


def topic_policy(topic_arn: str, account: Account) -> str:
    """Only AWS's two cost services may publish, and only for this account."""
    return iam.document(
        {
            "Sid": "CostServicesPublish",
            "Effect": "Allow",
            "Principal": {"Service": list(PUBLISHERS)},
            "Action": "sns:Publish",
            "Resource": topic_arn,
            "Condition": {"StringEquals": {"aws:SourceAccount": account.id}},
        }
    )
