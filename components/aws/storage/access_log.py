"""Where S3 writes down who did what with the objects of a stack's buckets."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws.account import Account, current_account
from components.aws.storage.bucket import restrict, tls_only
from components.base import Component
from components.ordering import after


class AwsAccessLogArgs(TypedDict):
    """How long the log is kept."""

    retention_days: int
    force_destroy: NotRequired[bool]
    """Delete the bucket even with a log in it. Default: no."""


class AwsAccessLog(Component):
    """A private bucket that takes S3's server access logs of this account's buckets, and nothing else.

    Encrypted with S3's own keys: the log service cannot write under another (S3 user guide, "Enabling Amazon
    S3 server access logging"). Logs come late, and S3 does not promise that they are complete.
    """

    bucket: pulumi.Output[str]
    """The bucket; what logs to it comes after it accepts logs."""

    def __init__(self, name: str, args: AwsAccessLogArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        bucket = aws.s3.Bucket(name, force_destroy=args.get("force_destroy", False), opts=self.child())
        aws.s3.BucketLifecycleConfiguration(
            f"{name}-lifecycle",
            bucket=bucket.bucket,
            rules=[
                {
                    "id": "old-logs",
                    "status": "Enabled",
                    "filter": {},
                    "expiration": {"days": args["retention_days"]},
                }
            ],
            opts=self.child(),
        )
        document = pulumi.Output.all(bucket.arn, current_account(self)).apply(
            lambda known: log_policy(*known)
        )
        policy = restrict(self, name, bucket, document)
        self.bucket = after(bucket.bucket, [policy])
        self.register_outputs({"bucket": self.bucket})


def log_policy(bucket_arn: str, account: Account) -> Mapping[str, object]:
    """S3 may write logs of this account's buckets; nobody speaks without TLS."""
    objects = f"{bucket_arn}/*"
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "LogsOfThisAccount",
                "Effect": "Allow",
                "Principal": {"Service": "logging.s3.amazonaws.com"},
                "Action": "s3:PutObject",
                "Resource": objects,
                "Condition": {"StringEquals": {"aws:SourceAccount": account.id}},
            },
            tls_only([bucket_arn, objects]),
        ],
    }
