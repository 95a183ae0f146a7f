"""The MLflow App of a stack: tracking by SageMaker, without a price of its own."""

from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import current_account
from components.aws.jobs.people import sagemaker_trust
from components.aws.jobs.person_rights import MLFLOW
from components.base import Component, Options


class AwsMlflowArgs(TypedDict):
    """The location of the files of runs."""

    region: str
    artifact_bucket: pulumi.Input[str]
    artifact_bucket_arn: pulumi.Input[str]
    kms_key_arn: pulumi.Input[str]
    """The key of the bucket."""
    domain_id: NotRequired[pulumi.Input[str]]
    """The domain whose members see it by default. Default: none."""


class AwsMlflow(Component):
    """An MLflow App with its files below `mlflow/` of the bucket, and a role with access to nothing else.

    Runs and metrics are stored by the service, and deleted with the app: files stay in the bucket.
    """

    arn: pulumi.Output[str]
    """The tracking URI for MLflow's clients."""

    def __init__(self, name: str, args: AwsMlflowArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        trusted = current_account(self).apply(lambda owner: sagemaker_trust(owner, args["region"]))
        role = iam.role(self, f"{name}-role", trusted, description="Files of the MLflow App")
        policy = aws.iam.RolePolicy(
            f"{name}-policy",
            role=role.id,
            policy=pulumi.Output.all(args["artifact_bucket_arn"], args["kms_key_arn"]).apply(
                lambda known: _files(*known, region=args["region"])
            ),
            opts=self.child(),
        )
        app = aws.sagemaker.MlflowApp(
            f"{name}-app",
            name=name,
            artifact_store_uri=pulumi.Output.concat("s3://", args["artifact_bucket"], "/", MLFLOW),
            role_arn=role.arn,
            account_default_status="DISABLED",
            default_domain_id_lists=[args["domain_id"]] if "domain_id" in args else None,
            model_registration_mode="AutoModelRegistrationDisabled",
            opts=self.child(pulumi.ResourceOptions(depends_on=[policy])),
        )
        self.arn = app.arn
        self.register_declared()


def _files(bucket: str, key: str, *, region: str) -> str:
    listed = {"StringLike": {"s3:prefix": [MLFLOW, f"{MLFLOW}/*"]}}
    through_s3 = {"StringEquals": {"kms:ViaService": [f"s3.{region}.amazonaws.com"]}}
    return iam.document(
        iam.allow(["s3:DeleteObject", "s3:GetObject", "s3:PutObject"], [f"{bucket}/{MLFLOW}/*"]),
        {**iam.allow(["s3:ListBucket"], [bucket]), "Condition": listed},
        {**iam.allow(["kms:Decrypt", "kms:GenerateDataKey"], [key]), "Condition": through_s3},
    )
