"""Access logs of a stack's buckets and of its load balancer."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws.account import AwsAccount, current_account
from components.aws.storage.bucket import restrict, tls_only
from components.base import Component, Options
from components.ordering import after

# The folder of a load balancer's log.
BALANCER_PREFIX = "load-balancer"


class AwsAccessLogArgs(TypedDict):
    """Retention of the log."""

    retention_days: int
    """Days for which the log is kept."""
    load_balancer: NotRequired[bool]
    """Whether a load balancer of this account logs here, too, below `load-balancer/`. Default: no."""
    force_destroy: NotRequired[bool]
    """Delete the bucket even with a log in it. Default: no."""


class AwsAccessLog(Component):
    """A private bucket for S3's server access logs of this account's buckets, and a load balancer's.

    Encrypted with S3's own keys: neither log service can write with another (S3 user guide, "Enabling Amazon
    S3 server access logging"; Elastic Load Balancing, "Enable access logs for your Application Load
    Balancer"). Logs arrive late, and neither service promises that they are complete.
    """

    bucket: pulumi.Output[str]
    """The bucket; resources that log to it come after it accepts logs."""

    def __init__(self, name: str, args: AwsAccessLogArgs, opts: Options = None) -> None:
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
            lambda known: log_policy(*known, load_balancer=args.get("load_balancer", False))
        )
        policy = restrict(self, name, bucket, document)
        self.bucket = after(bucket.bucket, [policy])
        self.register_declared()


def log_policy(bucket_arn: str, account: AwsAccount, *, load_balancer: bool) -> Mapping[str, object]:
    """S3 may write logs of this account's buckets; requests without TLS are denied.

    A load balancer writes below a folder of its account's number (Elastic Load Balancing, "Enable access logs
    for your Application Load Balancer", read 2026-11-23).
    """
    objects = f"{bucket_arn}/*"
    balancers = {
        "Sid": "LoadBalancersOfThisAccount",
        "Effect": "Allow",
        "Principal": {"Service": "logdelivery.elasticloadbalancing.amazonaws.com"},
        "Action": "s3:PutObject",
        "Resource": f"{bucket_arn}/{BALANCER_PREFIX}/AWSLogs/{account.id}/*",
    }
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
            *([balancers] if load_balancer else []),
        ],
    }
