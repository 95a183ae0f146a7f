"""Alarms of CloudWatch about storage that no metric of the cluster shows."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.base import Component
from components.runbooks import BUCKET, LUSTRE, page_of_storage

_GIB, _GB = 2**30, 10**9
# Lustre: a sample of each target (OST) in a minute, of which the sum is what the file system has left. In a
# longer period the sum counts every target several times. Source: FSx for Lustre user guide, "Amazon FSx for
# Lustre metrics and dimensions", storage capacity metrics.
_MINUTE_S, _MINUTES = 60, 15
# Buckets: S3 says once a day what each storage class holds, non-current versions and parts of uploads among
# it. Source: Amazon S3 user guide, "Amazon S3 metrics and dimensions", BucketSizeBytes.
_DAY_S = 86_400
STORAGE_TYPES = {
    "STANDARD": "StandardStorage",
    "STANDARD_IA": "StandardIAStorage",
    "GLACIER_IR": "GlacierInstantRetrievalStorage",
}
"""What CloudWatch calls a storage class of S3."""


class WatchedLustreArgs(TypedDict):
    """A file system, and how much of it has to be free."""

    file_system_id: pulumi.Input[str]
    least_free_gib: float
    """GiB below which people are told."""


class WatchedClassArgs(TypedDict):
    """A storage class of a bucket, and how much may be in it."""

    storage_class: str
    """`STANDARD`, `STANDARD_IA` or `GLACIER_IR`."""
    limit_gb: float
    """GB (1e9 bytes) above which people are told."""


class AwsStorageAlarmsArgs(TypedDict):
    """What is watched, and where people are told."""

    topic_arn: pulumi.Input[str]
    """A topic that CloudWatch may publish to: not one under AWS's own key."""
    checkpoint_bucket: pulumi.Input[str]
    checkpoint_classes: Sequence[WatchedClassArgs]
    """Empty where nobody knows how large checkpoints are."""
    lustre: NotRequired[WatchedLustreArgs]
    """Default: there is none."""


class AwsStorageAlarms(Component):
    """Alarms that need no cluster: Lustre nearly full, and more checkpoints than the policy leaves.

    Drivers of Lustre report no volumes to the kubelet, and nothing in a cluster sees a bucket. EFS grows by
    itself, so nothing fills up there. What the alarm says has the path of its runbook page.
    """

    alarm_arns: pulumi.Output[Sequence[str]]
    """Of all alarms."""

    def __init__(
        self, name: str, args: AwsStorageAlarmsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        alarms = [self._class(name, args, one) for one in args["checkpoint_classes"]]
        if "lustre" in args:
            alarms.append(self._lustre(name, args["topic_arn"], args["lustre"]))
        self.alarm_arns = pulumi.Output.all(*(alarm.arn for alarm in alarms))
        self.register_outputs({"alarm_arns": self.alarm_arns})

    def _lustre(
        self, name: str, topic_arn: pulumi.Input[str], wanted: WatchedLustreArgs
    ) -> aws.cloudwatch.MetricAlarm:
        least = wanted["least_free_gib"]
        return aws.cloudwatch.MetricAlarm(
            f"{name}-lustre",
            alarm_description=_said(LUSTRE, f"The fast file system has less than {least:,.0f} GiB left."),
            namespace="AWS/FSx",
            metric_name="FreeDataStorageCapacity",
            dimensions={"FileSystemId": wanted["file_system_id"]},
            statistic="Sum",
            period=_MINUTE_S,
            evaluation_periods=_MINUTES,
            comparison_operator="LessThanThreshold",
            threshold=least * _GIB,
            alarm_actions=[topic_arn],
            ok_actions=[topic_arn],
            opts=self.child(),
        )

    def _class(
        self, name: str, args: AwsStorageAlarmsArgs, wanted: WatchedClassArgs
    ) -> aws.cloudwatch.MetricAlarm:
        where, limit = wanted["storage_class"], wanted["limit_gb"]
        return aws.cloudwatch.MetricAlarm(
            f"{name}-checkpoints-{where.lower().replace('_', '-')}",
            alarm_description=_said(
                BUCKET, f"Checkpoints take more than {limit:,.0f} GB of the class {where}."
            ),
            namespace="AWS/S3",
            metric_name="BucketSizeBytes",
            dimensions={"BucketName": args["checkpoint_bucket"], "StorageType": STORAGE_TYPES[where]},
            statistic="Average",
            period=_DAY_S,
            evaluation_periods=1,
            comparison_operator="GreaterThanThreshold",
            threshold=limit * _GB,
            # A day's sample comes hours late: until then the alarm says what it said.
            treat_missing_data="ignore",
            alarm_actions=[args["topic_arn"]],
            ok_actions=[args["topic_arn"]],
            opts=self.child(),
        )


def _said(alert: str, text: str) -> str:
    return f"{alert}: {text} What to do first: {page_of_storage(alert)}"
