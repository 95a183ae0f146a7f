"""CloudWatch alarms about storage without a metric in the cluster."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.base import Component, Options
from components.runbooks import BUCKET, LUSTRE, ROOT, page_of_storage

_GIB, _GB = 2**30, 10**9
# Lustre: one sample per target (OST) and minute, whose sum is the free space of the file system. In a
# longer period the sum counts every target several times. Source: FSx for Lustre user guide, "Amazon FSx for
# Lustre metrics and dimensions", storage capacity metrics.
_MINUTE_S, _MINUTES = 60, 15
# Buckets: S3 reports once a day the size of each storage class, non-current versions and parts of uploads
# included. Source: Amazon S3 user guide, "Amazon S3 metrics and dimensions", BucketSizeBytes.
_DAY_S = 86_400
STORAGE_TYPES = {
    "STANDARD": "StandardStorage",
    "STANDARD_IA": "StandardIAStorage",
    "GLACIER_IR": "GlacierInstantRetrievalStorage",
}
"""CloudWatch's names of the storage classes of S3."""


class LustreAlarmArgs(TypedDict):
    """A file system, and its minimum of free space."""

    file_system_id: pulumi.Input[str]
    """Id of the FSx for Lustre file system."""
    least_free_gib: float
    """GiB below which an alarm is sent."""


class WatchedClassArgs(TypedDict):
    """A storage class of a bucket, and its maximum size."""

    storage_class: str
    """`STANDARD`, `STANDARD_IA` or `GLACIER_IR`."""
    limit_gb: float
    """GB (1e9 bytes) above which an alarm is sent."""


class AwsStorageAlarmsArgs(TypedDict):
    """Monitored storage, and the topic of alarms."""

    topic_arn: pulumi.Input[str]
    """A topic that CloudWatch may publish to: not one under AWS's own key."""
    checkpoint_bucket: pulumi.Input[str]
    """Name of the bucket of checkpoints."""
    checkpoint_classes: Sequence[WatchedClassArgs]
    """Empty where the size of checkpoints is unknown."""
    runbooks_url: NotRequired[str]
    """Address of the folder of runbook pages. Default: alarms have the path of a page in this repository."""
    lustre: NotRequired[LustreAlarmArgs]
    """Default: there is none."""


class AwsStorageAlarms(Component):
    """Alarms that need no cluster: Lustre nearly full, and more checkpoints than the policy allows.

    Drivers of Lustre report no volumes to the kubelet, and a cluster has no metrics of buckets. EFS grows
    automatically, so it cannot fill up. The text of each alarm names its runbook page.
    """

    alarm_arns: pulumi.Output[Sequence[str]]
    """ARNs of all alarms."""

    def __init__(self, name: str, args: AwsStorageAlarmsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        alarms = [self._class(name, args, one) for one in args["checkpoint_classes"]]
        if "lustre" in args:
            alarms.append(self._lustre(name, args, args["lustre"]))
        self.alarm_arns = pulumi.Output.all(*(alarm.arn for alarm in alarms))
        self.register_declared()

    def _lustre(
        self, name: str, args: AwsStorageAlarmsArgs, wanted: LustreAlarmArgs
    ) -> aws.cloudwatch.MetricAlarm:
        least = wanted["least_free_gib"]
        return aws.cloudwatch.MetricAlarm(
            f"{name}-lustre",
            alarm_description=_description(
                args, LUSTRE, f"The fast file system has less than {least:,.0f} GiB left."
            ),
            namespace="AWS/FSx",
            metric_name="FreeDataStorageCapacity",
            dimensions={"FileSystemId": wanted["file_system_id"]},
            statistic="Sum",
            period=_MINUTE_S,
            evaluation_periods=_MINUTES,
            comparison_operator="LessThanThreshold",
            threshold=least * _GIB,
            alarm_actions=[args["topic_arn"]],
            ok_actions=[args["topic_arn"]],
            opts=self.child(),
        )

    def _class(
        self, name: str, args: AwsStorageAlarmsArgs, wanted: WatchedClassArgs
    ) -> aws.cloudwatch.MetricAlarm:
        where, limit = wanted["storage_class"], wanted["limit_gb"]
        return aws.cloudwatch.MetricAlarm(
            f"{name}-checkpoints-{where.lower().replace('_', '-')}",
            alarm_description=_description(
                args, BUCKET, f"Checkpoints take more than {limit:,.0f} GB of the class {where}."
            ),
            namespace="AWS/S3",
            metric_name="BucketSizeBytes",
            dimensions={"BucketName": args["checkpoint_bucket"], "StorageType": STORAGE_TYPES[where]},
            statistic="Average",
            period=_DAY_S,
            evaluation_periods=1,
            comparison_operator="GreaterThanThreshold",
            threshold=limit * _GB,
            # A day's sample arrives hours late: until then the alarm keeps its state.
            treat_missing_data="ignore",
            alarm_actions=[args["topic_arn"]],
            ok_actions=[args["topic_arn"]],
            opts=self.child(),
        )


def _description(args: AwsStorageAlarmsArgs, alert: str, text: str) -> str:
    return f"{alert}: {text} What to do first: {page_of_storage(alert, args.get('runbooks_url', ROOT))}"
