"""MLflow of a Slurm system: an MLflow App of SageMaker, and the program by which jobs of nodes reach it."""

import base64
import hashlib
from collections.abc import Mapping
from typing import Final, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.jobs.mlflow import AwsMlflow
from components.aws.jobs.person_rights import MLFLOW
from components.base import Component, Options
from infra.launchers.program_zip import program_zip
from infra.slurm import tracking

_MAIN: Final = "agents.slurm.mlflow_proxy"
_MODULES: Final = (
    _MAIN,
    "agents.mlflow_server.bodies",
    "agents.mlflow_server.guard",
    "agents.slurm.request_body",
    "agents.slurm.aws.requests",
    "agents.slurm.aws.mlflow_app",
    "agents.slurm.upstream",
)


class AwsSlurmTrackingArgs(TypedDict):
    """Buckets, nodes and teams."""

    region: str
    """Region of the provider in use."""
    artifact_bucket: pulumi.Input[str]
    """Bucket of code and of files of runs."""
    artifact_bucket_arn: pulumi.Input[str]
    """Its ARN."""
    kms_key_arn: pulumi.Input[str]
    """Key of the bucket."""
    code: str
    """Folder of the bucket that nodes read, such as `slurm/code`."""
    role_name: pulumi.Input[str]
    """Role of the nodes, which may use the key."""
    folder: str
    """Folder of scripts on nodes."""
    teams: Mapping[str, str]
    """Names of teams by account."""


class AwsSlurmTracking(Component):
    """An MLflow App, the right of nodes to call it, and files of nodes that serve it on the loopback.

    Jobs cannot reach the role of a node: a program with a user of its own sends their requests. It refuses to
    delete and to rename; IAM cannot, since `sagemaker:CallMlflowAppApi` covers every request. *Untested in a
    real account.*
    """

    arn: pulumi.Output[str]
    """ARN of the App: the tracking URI of clients with a login of AWS."""
    files: pulumi.Output[Mapping[str, str]]
    """Files of nodes by path."""

    def __init__(self, name: str, args: AwsSlurmTrackingArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        app = AwsMlflow(
            f"{name}-mlflow",
            {
                "region": args["region"],
                "artifact_bucket": args["artifact_bucket"],
                "artifact_bucket_arn": args["artifact_bucket_arn"],
                "kms_key_arn": args["kms_key_arn"],
            },
            self.child(),
        )
        content = program_zip(_MAIN, _MODULES)
        key = f"{args['code']}/mlflow-{hashlib.sha256(content).hexdigest()[:16]}.zip"
        program = aws.s3.BucketObjectv2(
            f"{name}-program",
            bucket=args["artifact_bucket"],
            key=key,
            content_base64=base64.b64encode(content).decode(),
            content_type="application/zip",
            # An object takes ten tags, and the default tags of a stack may be more.
            override_provider=aws.s3.BucketObjectv2OverrideProviderArgs(
                default_tags=aws.s3.BucketObjectv2OverrideProviderDefaultTagsArgs(tags={})
            ),
            opts=self.child(),
        )
        aws.iam.RolePolicy(
            f"{name}-runs",
            role=args["role_name"],
            policy=pulumi.Output.all(app.arn, args["artifact_bucket_arn"]).apply(
                lambda known: _policy(*known)
            ),
            opts=self.child(),
        )
        self.arn = app.arn
        self.files = pulumi.Output.all(arn=app.arn, bucket=args["artifact_bucket"], key=program.key).apply(
            lambda known: tracking.files(
                {"MLFLOW_APP": known["arn"], "ARTIFACTS": f"s3://{known['bucket']}/{MLFLOW}"},
                f"aws s3 cp --quiet s3://{known['bucket']}/{known['key']} -",
                args["teams"],
                args["folder"],
            )
        )
        self.register_outputs({"arn": self.arn})


def _policy(app: str, bucket: str) -> str:
    listed = {"StringLike": {"s3:prefix": [f"{MLFLOW}/*"]}}
    return iam.document(
        iam.allow(["sagemaker:CallMlflowAppApi"], [app]),
        iam.allow(["s3:GetObject", "s3:PutObject"], [f"{bucket}/{MLFLOW}/*"]),
        {**iam.allow(["s3:ListBucket"], [bucket]), "Condition": listed},
    )
