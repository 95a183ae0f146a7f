"""The validation of a stack without a cluster, again and again: EventBridge Scheduler starts the job."""

from typing import TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import Account, current_account
from components.base import Component
from components.jobs.gate_provider import PREFIX, SCHEDULED
from infra.catalog.aws.schedules import for_scheduler

# Every start has one, and the name of a job is used once (EventBridge Scheduler user guide, "Adding context
# attributes in EventBridge Scheduler").
_START = "<aws.scheduler.execution-id>"
# A universal target: the request of an API (user guide, "Using universal targets in EventBridge Scheduler").
_TARGET = "arn:aws:scheduler:::aws-sdk:sagemaker:createTrainingJob"


class AwsJobScheduleArgs(TypedDict):
    """What is repeated, and when."""

    region: str
    schedule: str
    """Five fields, in UTC."""
    request: pulumi.Input[str]
    """The request of a validation that passed, as JSON (`components.jobs.gate.JobGate.scheduled`)."""
    role_arn: pulumi.Input[str]
    """The role of the job."""


class AwsJobSchedule(Component):
    """Starts the validation at its times, with a role that can do nothing else.

    A start that the service refuses is not told to anybody: it is missing among the runs.
    """

    name: pulumi.Output[str]

    def __init__(
        self, name: str, args: AwsJobScheduleArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        owner = current_account(self)
        role = iam.role(self, f"{name}-role", owner.apply(_trust))
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
        self.name = schedule.name
        self.register_outputs({"name": self.name})


def _each_of_its_own(request: str) -> str:
    """The request with another name at every start, which is that of its folders, too."""
    return request.replace(SCHEDULED, f"{PREFIX}{_START}")


def _trust(owner: Account) -> str:
    source = f"arn:{owner.partition}:scheduler:*:{owner.id}:schedule/*"
    return iam.trust("scheduler.amazonaws.com", conditions=iam.from_account(owner.id, source))


def _rights(region: str, account: Account, role: str) -> str:
    jobs = f"arn:{account.partition}:sagemaker:{region}:{account.id}:training-job/{PREFIX}*"
    handed = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    return iam.document(
        iam.allow(["sagemaker:CreateTrainingJob", "sagemaker:AddTags"], [jobs]),
        {**iam.allow(["iam:PassRole"], [role]), "Condition": handed},
    )
