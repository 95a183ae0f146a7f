"""Cleanup of a SageMaker domain at `destroy`: apps, spaces and security groups of the homes."""

import json
from collections.abc import Mapping, Sequence
from typing import TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import AwsAccount, current_account
from components.aws.functions.function import LONGEST_S, AwsFunction
from components.base import Component, Options
from infra.naming import TAG_PREFIX


class AwsCleaningArgs(TypedDict):
    """Arguments of the cleanup function."""

    region: str
    stack: str
    vpc_id: pulumi.Input[str]
    log_retention_days: int
    kms_key_arn: pulumi.Input[str]
    """Key of the function's log; CloudWatch Logs may use it."""


class AwsCleaning(Component):
    """A function that the engine calls when it deletes a stack, and its call for the groups of the homes.

    The domain must come after this component (`groups`), so that its call directly follows the domain's
    deletion; `empty` is the call for apps and spaces, which comes after domain and profiles and is deleted
    before them.
    """

    groups: aws.lambda_.Invocation

    def __init__(self, name: str, args: AwsCleaningArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        self._prefix = name
        self._function = AwsFunction(
            f"{name}-function",
            {
                "package": "agents.aws.leftovers",
                "handler": "function.handler",
                "environment": {},
                "statements": pulumi.Output.all(current_account(self), args["vpc_id"]).apply(
                    lambda known: cleaning_rights(args["region"], args["stack"], *known)
                ),
                "timeout_s": LONGEST_S,
                "log_retention_days": args["log_retention_days"],
                "kms_key_arn": args["kms_key_arn"],
            },
            self.child(),
        )
        self.groups = self._call("groups", {"vpc": args["vpc_id"]}, ())
        self.register_outputs({"function_name": self._function.name})

    def empty(
        self, domain_id: pulumi.Input[str], profiles: Sequence[pulumi.Resource]
    ) -> aws.lambda_.Invocation:
        """The call that deletes apps and spaces of a domain before its profiles are deleted."""
        return self._call("spaces", {"domain": domain_id}, profiles)

    def _call(
        self, what: str, event: Mapping[str, pulumi.Input[str]], needs: Sequence[pulumi.Resource]
    ) -> aws.lambda_.Invocation:
        return aws.lambda_.Invocation(
            f"{self._prefix}-{what}",
            function_name=self._function.name,
            input=pulumi.Output.from_input(dict(event)).apply(
                lambda known: json.dumps(known, sort_keys=True)
            ),
            lifecycle_scope="CRUD",
            opts=self.child(pulumi.ResourceOptions(depends_on=list(needs))),
        )


def cleaning_rights(region: str, stack: str, owner: AwsAccount, vpc: str) -> list[Mapping[str, object]]:
    """Apps and spaces of the stack's domain, by its tag; groups in its VPC alone."""
    here = f"arn:{owner.partition}:sagemaker:{region}:{owner.id}"
    network = f"arn:{owner.partition}:ec2:{region}:{owner.id}"
    ours = {"StringEquals": {f"aws:ResourceTag/{TAG_PREFIX}:stack": stack}}
    inside = {"ArnEquals": {"ec2:Vpc": f"{network}:vpc/{vpc}"}}
    changes = ["ec2:DeleteSecurityGroup", "ec2:RevokeSecurityGroupEgress", "ec2:RevokeSecurityGroupIngress"]
    deletes = ["sagemaker:DeleteApp", "sagemaker:DeleteSpace"]
    return [
        iam.allow(["ec2:DescribeSecurityGroups", "sagemaker:ListApps", "sagemaker:ListSpaces"], ["*"]),
        {**iam.allow(deletes, [f"{here}:app/*", f"{here}:space/*"]), "Condition": ours},
        {**iam.allow(changes, [f"{network}:security-group/*"]), "Condition": inside},
    ]
