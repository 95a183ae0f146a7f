"""The role of the job that validates a stack."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import AwsAccount, current_account
from components.aws.jobs.people import sagemaker_trust
from components.aws.jobs.person_rights import CODE, MLFLOW, RUNS
from components.aws.jobs.running_rights import RunningPlace, running_rights
from components.base import Component, Options
from components.ordering import after


class AwsValidationRoleArgs(TypedDict):
    """Data that the validation reads and writes."""

    region: str
    image: str
    """The image of the job, by digest."""
    checkpoint_bucket_arn: pulumi.Input[str]
    artifact_bucket_arn: pulumi.Input[str]
    kms_key_arn: pulumi.Input[str]
    mlflow_arn: pulumi.Input[str]
    subnet_ids: pulumi.Input[Sequence[str]]
    security_group_ids: Sequence[pulumi.Input[str]]
    """Network of the job."""
    results: str
    """The folder of results in the bucket of checkpoints, such as `/smoke`."""
    alert_topic_arn: NotRequired[pulumi.Input[str]]
    """Topic of a repeated validation. Default: there is none."""


class AwsValidationRole(Component):
    """A role for the validation alone: without access to data of people, and not usable by them."""

    role_arn: pulumi.Output[str]
    """The role; dependents come after its permissions."""

    def __init__(self, name: str, args: AwsValidationRoleArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        owner = current_account(self)
        role = iam.role(self, f"{name}-role", owner.apply(lambda one: sagemaker_trust(one, args["region"])))
        known = pulumi.Output.all(
            account=owner,
            checkpoints=args["checkpoint_bucket_arn"],
            artifacts=args["artifact_bucket_arn"],
            key=args["kms_key_arn"],
            mlflow=args["mlflow_arn"],
            subnets=args["subnet_ids"],
            groups=pulumi.Output.all(*args["security_group_ids"]),
            topic=args.get("alert_topic_arn"),
        )
        policies = [
            aws.iam.RolePolicy(f"{name}-{what}", role=role.id, policy=policy, opts=self.child())
            for what, policy in (
                ("data", known.apply(lambda found: _data(args, found))),
                ("running", known.apply(lambda found: _running(args, found))),
            )
        ]
        self.role_arn = after(role.arn, policies)
        self.register_declared()


def _data(args: AwsValidationRoleArgs, known: Mapping[str, object]) -> str:
    """Code is readable; results, the service's job output and files of the record are writable."""
    artifacts = known["artifacts"]
    through = {"StringEquals": {"kms:ViaService": [f"s3.{args['region']}.amazonaws.com"]}}
    listed = {"StringLike": {"s3:prefix": [f"{CODE}/*"]}}
    written = [f"{artifacts}/{name}/*" for name in (RUNS, MLFLOW)]
    return iam.document(
        iam.allow(["s3:GetObject"], [f"{artifacts}/{CODE}/*"]),
        {**iam.allow(["s3:ListBucket"], [str(artifacts)]), "Condition": listed},
        iam.allow(["s3:PutObject"], [*written, f"{known['checkpoints']}{args['results']}/*"]),
        {**iam.allow(["kms:Decrypt", "kms:GenerateDataKey"], [str(known["key"])]), "Condition": through},
        iam.allow(["sagemaker:CallMlflowAppApi"], [str(known["mlflow"])]),
        *([iam.allow(["sns:Publish"], [str(known["topic"])])] if known["topic"] else []),
    )


def _running(args: AwsValidationRoleArgs, known: Mapping[str, Any]) -> str:
    account = known["account"]
    assert isinstance(account, AwsAccount)
    network = (sorted(known["subnets"]), known["groups"])
    place = RunningPlace(args["region"], account.id, account.partition, str(known["key"]), *network)
    return running_rights(place, args["image"])
