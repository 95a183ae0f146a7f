"""Budgets with actions: of the stack, of teams and of people, and the function that they call."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from agents.aws.budget_stop.function import AUDIT, SETTINGS
from components.aws import iam
from components.aws.account import AwsAccount, current_account
from components.aws.functions.function import AwsFunction
from components.aws.money.scopes import ScopeArgs, scoped_budget
from components.base import Component, Options
from infra.naming import TAG_PREFIX

# SageMaker handles hundreds of requests in it.
_TIMEOUT_S = 300
# Finds workloads that start after a notification; billing data itself is 8 to 24 hours old.
_AGAIN = "rate(1 hour)"


class AwsBudgetStopArgs(TypedDict):
    """The budgets, and the settings of the function."""

    region: str
    stack: str
    scopes: Sequence[ScopeArgs]
    """Budgets, that of the stack first."""
    people: Mapping[str, str]
    """The team of each person."""
    artifact_bucket: pulumi.Input[str]
    artifact_bucket_arn: pulumi.Input[str]
    """Bucket with records of stopped workloads below `audit/`."""
    storage_key_arn: pulumi.Input[str]
    """The key of the bucket."""
    kms_key_arn: pulumi.Input[str]
    """Key of the topic and of the function's log; AWS Budgets and CloudWatch Logs may use it."""
    people_topic_arn: pulumi.Input[str]
    """Addresses for reports of stopped workloads."""
    log_retention_days: int
    schedule: NotRequired[bool]
    """Whether it also runs every hour. Default: yes."""


class AwsBudgetStop(Component):
    """AWS Budgets with one topic, and a function behind it that stops jobs, notebooks and endpoints.

    AWS Budgets' own actions can stop EC2 and RDS only. For a budget with `over_budget: warn` the function
    reports and records what it would have stopped. Its figures are those of the bill, 8 to 24 hours old:
    `max_hours`, the quotas of the account and spot prices bound what a day can cost.
    """

    budget_names: dict[str, pulumi.Output[str]]
    """Budgets by `<scope>-<value>`."""
    function_name: pulumi.Output[str]
    topic_arn: pulumi.Output[str]

    def __init__(self, name: str, args: AwsBudgetStopArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        account = current_account(self)
        topic = aws.sns.Topic(f"{name}-topic", kms_master_key_id=args["kms_key_arn"], opts=self.child())
        policy = aws.sns.TopicPolicy(
            f"{name}-topic-policy",
            arn=topic.arn,
            policy=pulumi.Output.all(topic.arn, account).apply(lambda known: _from_budgets(*known)),
            opts=self.child(),
        )
        budgets = [
            scoped_budget(self, name, one, stack=args["stack"], topic_arn=topic.arn, after=[policy])
            for one in args["scopes"]
        ]
        keys = [f"{one['scope']}-{one['value']}" for one in args["scopes"]]
        self.budget_names = {key: budget.name for key, budget in zip(keys, budgets, strict=True)}
        function = self._function(name, args, budgets, account)
        self._wake(name, function, topic, schedule=args.get("schedule", True))
        self.function_name, self.topic_arn = function.name, topic.arn
        self.register_outputs({"budget_names": self.budget_names, "function_name": self.function_name})

    def _function(
        self,
        name: str,
        args: AwsBudgetStopArgs,
        budgets: Sequence[aws.budgets.Budget],
        account: pulumi.Output[AwsAccount],
    ) -> AwsFunction:
        rows = [
            {
                "name": budget.name,
                "scope": one["scope"],
                "value": one["value"],
                "over_budget": one["over_budget"],
            }
            for budget, one in zip(budgets, args["scopes"], strict=True)
        ]
        settings = pulumi.Output.all(
            account=account.apply(lambda owner: owner.id),
            bucket=args["artifact_bucket"],
            topic=args["people_topic_arn"],
            budgets=pulumi.Output.all(*(pulumi.Output.from_input(row) for row in rows)),
        ).apply(
            lambda known: json.dumps(
                {"stack": args["stack"], "people": dict(args["people"]), **known}, sort_keys=True
            )
        )
        return AwsFunction(
            f"{name}-function",
            {
                "package": "agents.aws.budget_stop",
                "imports": ["agents.budget_stop"],
                "handler": "function.handler",
                "environment": {SETTINGS: settings},
                "statements": pulumi.Output.all(
                    account, args["artifact_bucket_arn"], args["storage_key_arn"], args["people_topic_arn"]
                ).apply(lambda known: stop_rights(args["region"], args["stack"], _Uses(*known))),
                "timeout_s": _TIMEOUT_S,
                "log_retention_days": args["log_retention_days"],
                "kms_key_arn": args["kms_key_arn"],
            },
            self.child(),
        )

    def _wake(self, name: str, function: AwsFunction, topic: aws.sns.Topic, *, schedule: bool) -> None:
        from_topic = aws.lambda_.Permission(
            f"{name}-from-topic",
            action="lambda:InvokeFunction",
            function=function.name,
            principal="sns.amazonaws.com",
            source_arn=topic.arn,
            opts=self.child(),
        )
        aws.sns.TopicSubscription(
            f"{name}-wakes",
            topic=topic.arn,
            protocol="lambda",
            endpoint=function.arn,
            opts=self.child(pulumi.ResourceOptions(depends_on=[from_topic])),
        )
        if not schedule:
            return
        rule = aws.cloudwatch.EventRule(
            f"{name}-hourly",
            schedule_expression=_AGAIN,
            description="Looks for what started after a budget was used up",
            opts=self.child(),
        )
        from_rule = aws.lambda_.Permission(
            f"{name}-from-rule",
            action="lambda:InvokeFunction",
            function=function.name,
            principal="events.amazonaws.com",
            source_arn=rule.arn,
            opts=self.child(),
        )
        aws.cloudwatch.EventTarget(
            f"{name}-hourly-target",
            rule=rule.name,
            arn=function.arn,
            opts=self.child(pulumi.ResourceOptions(depends_on=[from_rule])),
        )


class _Uses(NamedTuple):
    owner: AwsAccount
    bucket: str
    storage_key: str
    topic: str


def stop_rights(region: str, stack: str, uses: _Uses) -> list[Mapping[str, object]]:
    """Read everything, stop resources with the stack's tag, write records, send reports."""
    owner, bucket, storage_key, topic = uses
    here = f"arn:{owner.partition}:sagemaker:{region}:{owner.id}"
    ours = {"StringEquals": {f"aws:ResourceTag/{TAG_PREFIX}:stack": stack}}
    lists = [
        f"sagemaker:List{what}" for what in ("Apps", "Endpoints", "HyperParameterTuningJobs", "TrainingJobs")
    ]
    looks = [
        "sagemaker:DescribeApp",
        "sagemaker:DescribeDomain",
        "sagemaker:DescribeSpace",
        "sagemaker:ListTags",
    ]
    ends = {
        "app": "DeleteApp",
        "endpoint": "DeleteEndpoint",
        "hyper-parameter-tuning-job": "StopHyperParameterTuningJob",
        "training-job": "StopTrainingJob",
    }
    through_s3 = {"StringEquals": {"kms:ViaService": f"s3.{region}.amazonaws.com"}}
    listed = {"StringLike": {"s3:prefix": [f"{AUDIT}/*"]}}
    return [
        iam.allow(lists, ["*"]),
        iam.allow(looks, [f"{here}:*"]),
        {
            **iam.allow(
                [f"sagemaker:{action}" for action in ends.values()], [f"{here}:{kind}/*" for kind in ends]
            ),
            "Condition": ours,
        },
        iam.allow(["budgets:ViewBudget"], [f"arn:{owner.partition}:budgets::{owner.id}:budget/{stack}-*"]),
        iam.allow(["s3:PutObject"], [f"{bucket}/{AUDIT}/*"]),
        {**iam.allow(["s3:ListBucket"], [bucket]), "Condition": listed},
        {**iam.allow(["kms:Decrypt", "kms:GenerateDataKey"], [storage_key]), "Condition": through_s3},
        iam.allow(["sns:Publish"], [topic]),
    ]


def budgets_may_use_the_key(owner: AwsAccount) -> Mapping[str, object]:
    """AWS Budgets publishes to an encrypted topic.

    Source: AWS Cost Management user guide, "Creating an Amazon SNS topic for budget notifications"
    (kms:GenerateDataKey* and kms:Decrypt for budgets.amazonaws.com).
    """
    return {
        "Sid": "BudgetsOfThisAccount",
        "Effect": "Allow",
        "Principal": {"Service": "budgets.amazonaws.com"},
        "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
        "Resource": "*",
        "Condition": iam.from_account(owner.id, f"arn:{owner.partition}:budgets::{owner.id}:*"),
    }


def _from_budgets(topic_arn: str, owner: AwsAccount) -> str:
    return iam.document(
        {
            "Sid": "BudgetsOfThisAccount",
            "Effect": "Allow",
            "Principal": {"Service": "budgets.amazonaws.com"},
            "Action": "sns:Publish",
            "Resource": topic_arn,
            "Condition": iam.from_account(owner.id, f"arn:{owner.partition}:budgets::{owner.id}:*"),
        }
    )
