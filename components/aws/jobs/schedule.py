"""Scheduled validation of a stack without a cluster: EventBridge Scheduler starts the job."""

import json
from collections.abc import Mapping
from typing import NamedTuple, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import AwsAccount, current_account
from components.base import Component, Options
from components.jobs.gate_provider import PREFIX, SCHEDULED
from components.ordering import after
from infra.catalog.aws.schedules import for_scheduler

# Every start has an id, and the name of a job is used once (EventBridge Scheduler user guide, "Adding context
# attributes in EventBridge Scheduler").
_START = "<aws.scheduler.execution-id>"
# A universal target: the request of an API (user guide, "Using universal targets in EventBridge Scheduler").
_TARGET = "arn:aws:scheduler:::aws-sdk:sagemaker:createTrainingJob"
_PERIOD_S = 300


class _Count(NamedTuple):
    """A metric that is written while there is something to count, and the text of its alarm."""

    namespace: str
    metric: str
    dimension: str
    text: str


# Metrics have one dimension, the group of schedules (user guide, "Monitoring Amazon EventBridge Scheduler
# with Amazon CloudWatch"; aws-cdk aws-scheduler/lib/schedule-group.ts).
_DROPPED = _Count(
    "AWS/Scheduler",
    "InvocationDroppedCount",
    "ScheduleGroup",
    "A scheduled validation was not started: the request of EventBridge Scheduler was denied. No retry "
    "before the next time. CloudTrail has CreateTrainingJob with its error: a permission that was removed "
    "(trainstack refresh, then trainstack up), or a quota (trainstack preflight).",
)
# A rule without a target writes metrics only (EventBridge user guide, "Using IAM policy conditions"). A topic
# as target would need a policy of its own, and a key that rules may use.
_ENDED = _Count(
    "AWS/Events",
    "TriggeredRules",
    "RuleName",
    "A validation did not pass, or found no machines, or took too long. Its findings are in a message of its "
    "own; without one, trainstack runs shows why the service ended it.",
)


class AwsJobScheduleArgs(TypedDict):
    """The validation to repeat, and its schedule."""

    region: str
    schedule: str
    """A cron expression of five fields, UTC."""
    request: pulumi.Input[str]
    """The request of a validation that passed, as JSON (`components.jobs.gate.JobGate.scheduled`)."""
    role_arn: pulumi.Input[str]
    """The role of the job."""
    topic_arn: pulumi.Input[str]
    """A topic for alerts, to which CloudWatch may publish (`AwsAlertTopicArgs.alarms_of`)."""


class AwsJobSchedule(Component):
    """Starts the validation at its times, with a role that has no other permission.

    A start that the service rejects is dropped, and an alarm reports it. Metrics are those of a group of
    schedules, so this one has a group of its own; CloudWatch promises to deliver most of them, not all.
    Another alarm reports jobs that failed, also those that never ran.
    *Untested in a real account.*
    """

    name: pulumi.Output[str]
    """Name of the schedule; comes after the alarms."""

    def __init__(self, name: str, args: AwsJobScheduleArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        owner = current_account(self)
        group = aws.scheduler.ScheduleGroup(f"{name}-group", opts=self.child())
        trusted = pulumi.Output.all(owner, group.arn).apply(lambda found: _trust(*found))
        role = iam.role(self, f"{name}-role", trusted)
        known = pulumi.Output.all(account=owner, role=args["role_arn"])
        policy = aws.iam.RolePolicy(
            f"{name}-start",
            role=role.id,
            policy=known.apply(lambda found: _rights(args["region"], **found)),
            opts=self.child(),
        )
        expression = for_scheduler(args["schedule"])
        assert expression is not None  # the rules of the spec say so
        schedule = aws.scheduler.Schedule(
            f"{name}-schedule",
            group_name=group.name,
            schedule_expression=expression,
            schedule_expression_timezone="UTC",
            flexible_time_window={"mode": "OFF"},
            target={
                "arn": _TARGET,
                "role_arn": role.arn,
                "input": pulumi.Output.from_input(args["request"]).apply(_each_of_its_own),
                # A second start would be another validation, with machines of its own.
                "retry_policy": {"maximum_retry_attempts": 0},
            },
            opts=self.child(pulumi.ResourceOptions(depends_on=[policy])),
        )
        rule = aws.cloudwatch.EventRule(
            f"{name}-ended",
            description="Validations that did not pass, or were ended by the service",
            event_pattern=pulumi.Output.from_input(args["role_arn"]).apply(ended_badly),
            opts=self.child(),
        )
        alarms = [
            self._alarm(f"{name}-dropped", args["topic_arn"], _DROPPED, group.name),
            self._alarm(f"{name}-ended", args["topic_arn"], _ENDED, rule.name),
        ]
        self.name = after(schedule.name, alarms)
        self.register_declared()

    def _alarm(
        self, name: str, topic_arn: pulumi.Input[str], count: _Count, of: pulumi.Output[str]
    ) -> aws.cloudwatch.MetricAlarm:
        """An alarm for each that is counted: without retries, each start that failed, for any reason."""
        return aws.cloudwatch.MetricAlarm(
            name,
            alarm_description=count.text,
            namespace=count.namespace,
            metric_name=count.metric,
            dimensions={count.dimension: of},
            statistic="Sum",
            period=_PERIOD_S,
            evaluation_periods=1,
            comparison_operator="GreaterThanThreshold",
            threshold=0,
            # Nothing is written while there is nothing to count. The end of an alarm is no repair, so it
            # sends no message.
            treat_missing_data="notBreaching",
            alarm_actions=[topic_arn],
            opts=self.child(),
        )


def ended_badly(role: str) -> str:
    """A pattern of events: training jobs as this role that failed or ran out of time.

    Jobs stopped by users are excluded. Source: SageMaker developer guide, "Events that Amazon SageMaker AI
    sends to Amazon EventBridge" (the detail is that of DescribeTrainingJob); SageMaker API reference,
    DescribeTrainingJob, `SecondaryStatus`.
    """
    detail: Mapping[str, object] = {
        "RoleArn": [role],
        "SecondaryStatus": ["Failed", "MaxRuntimeExceeded", "MaxWaitTimeExceeded"],
    }
    kind = "SageMaker Training Job State Change"
    return json.dumps({"source": ["aws.sagemaker"], "detail-type": [kind], "detail": detail}, sort_keys=True)


def _each_of_its_own(request: str) -> str:
    """The request with another name at every start, which is also the name of its folders."""
    return request.replace(SCHEDULED, f"{PREFIX}{_START}")


def _trust(owner: AwsAccount, group_arn: str) -> str:
    """The source is the group, never the schedule (user guide, "Confused deputy prevention")."""
    return iam.trust("scheduler.amazonaws.com", conditions=iam.from_account(owner.id, group_arn))


def _rights(region: str, account: AwsAccount, role: str) -> str:
    jobs = f"arn:{account.partition}:sagemaker:{region}:{account.id}:training-job/{PREFIX}*"
    handed = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    return iam.document(
        iam.allow(["sagemaker:CreateTrainingJob", "sagemaker:AddTags"], [jobs]),
        {**iam.allow(["iam:PassRole"], [role]), "Condition": handed},
    )
