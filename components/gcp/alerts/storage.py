"""Mail alerts about storage without a metric in the cluster, or without monitoring in it."""

import json
from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp.alerts.policies import PolicyArgs, channels_of, mail_policy
from components.runbooks import BUCKET, HOMES, LUSTRE, ROOT, page_of_storage

_GIB, _GB = 2**30, 10**9
# Samples come every minute, of the bucket's size once a day, repeated. Source of the metrics: Google Cloud
# documentation, "Google Cloud metrics" (lustre, file, storage), read 2026-11-26.
_ALIGNED, _FOR = "300s", "900s"
_LUSTRE = "lustre.googleapis.com/Instance"
# Each target (OST) reports its free space; the documents call those of metadata "mdt", the others not at all.
_DATA = 'metric.labels.component!="mdt"'


class WatchedLustreArgs(TypedDict):
    """A Managed Lustre instance, and its minimum of free space."""

    instance: pulumi.Input[str]
    """`projects/<project>/locations/<zone>/instances/<name>`."""
    least_free: float
    """Share of its space, 0 to 1, below which an alert is sent."""


class WatchedHomesArgs(TypedDict):
    """A Filestore instance, and its maximum use."""

    instance: pulumi.Input[str]
    """Its name."""
    location: str
    """Its zone, or the region."""
    limit_gib: pulumi.Input[float]
    """GiB above which an alert is sent."""


class GcpStorageAlertsArgs(TypedDict):
    """Monitored storage, and the addresses of alerts."""

    emails: Sequence[str]
    """Addresses that get the alerts, one to sixteen."""
    runbooks_url: NotRequired[str]
    """Address of the folder of runbook pages. Default: alerts have the path of a page in this repository."""
    lustre: NotRequired[WatchedLustreArgs]
    """Default: there is none."""
    homes: NotRequired[WatchedHomesArgs]
    """Default: there are none."""
    checkpoint_bucket: pulumi.Input[str]
    """Name of the bucket of checkpoints."""
    checkpoint_limit_gb: NotRequired[float]
    """GB (1e9 bytes) of checkpoints, of all storage classes and with deleted objects that can be restored,
    above which an alert is sent. Default: the size of checkpoints is unknown."""


class GcpStorageAlerts(Component):
    """Policies that need no cluster: file systems nearly full, and more checkpoints than the policy allows.

    The driver of Managed Lustre reports no volumes to the kubelet. That of Filestore does, for claims that a
    pod mounts, to a monitoring that may not exist. Raises UserError for invalid addresses.
    *Untested in a real project.*
    """

    policies: pulumi.Output[Sequence[str]]
    """Names of the policies."""

    def __init__(self, name: str, args: GcpStorageAlertsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        people = channels_of(self, name, args["emails"], f"{name}.emails")
        runbooks = args.get("runbooks_url", ROOT)
        made: list[gcp.monitoring.AlertPolicy] = []
        if "lustre" in args:
            made.append(self._policy(f"{name}-lustre", LUSTRE, _lustre(args["lustre"]), people, runbooks))
        if "homes" in args:
            made.append(self._policy(f"{name}-homes", HOMES, _homes(args["homes"]), people, runbooks))
        if "checkpoint_limit_gb" in args:
            bucket = _bucket(args["checkpoint_bucket"], args["checkpoint_limit_gb"])
            made.append(self._policy(f"{name}-checkpoints", BUCKET, bucket, people, runbooks))
        self.policies = pulumi.Output.all(*(policy.name for policy in made))
        self.register_declared()

    def _policy(
        self, name: str, alert: str, threshold: Any, people: Sequence[pulumi.Input[str]], runbooks: str
    ) -> gcp.monitoring.AlertPolicy:
        page = page_of_storage(alert, runbooks)
        asked: PolicyArgs = {
            "title": f"{name}: {alert}",
            "condition": {"display_name": alert, "condition_threshold": threshold},
            "documentation": f"{_WHAT[alert]}\n\nWhat it means and what to do first: {page}\n",
        }
        return mail_policy(self, name, asked, people)


def _lustre(wanted: WatchedLustreArgs) -> dict[str, Any]:
    """Free space as a share of the total: usable space is less than the sold size of the instance."""

    def measured(metric: str) -> pulumi.Output[str]:
        whole = f"lustre.googleapis.com/instance/{metric}"
        return pulumi.Output.from_input(wanted["instance"]).apply(
            lambda name: f"{_of(_LUSTRE, whole, **_place(name))} AND {_DATA}"
        )

    return {
        "filter": measured("available_bytes"),
        "denominator_filter": measured("capacity_bytes"),
        "denominator_aggregations": [_sum("ALIGN_MEAN")],
        **_when("COMPARISON_LT", wanted["least_free"], "ALIGN_MEAN"),
    }


def _place(instance: str) -> dict[str, str]:
    parts = instance.split("/")
    return {"location": parts[3], "instance_id": parts[5]}


def _homes(wanted: WatchedHomesArgs) -> dict[str, Any]:
    """Bytes, not the percentage: documents do not state whether that ends at 1 or at 100."""
    asked = pulumi.Output.from_input(wanted["instance"]).apply(
        lambda name: _of(
            "filestore_instance",
            "file.googleapis.com/nfs/server/used_bytes",
            location=wanted["location"],
            instance_name=name,
        )
    )
    limit = pulumi.Output.from_input(wanted["limit_gib"]).apply(lambda gib: gib * _GIB)
    return {"filter": asked, **_when("COMPARISON_GT", limit, "ALIGN_MEAN")}


def _bucket(bucket: pulumi.Input[str], limit_gb: float) -> dict[str, Any]:
    """Every storage class, and deleted objects: all of it is stored."""
    metric = "storage.googleapis.com/storage/v2/total_bytes"
    asked = pulumi.Output.from_input(bucket).apply(lambda name: _of("gcs_bucket", metric, bucket_name=name))
    return {"filter": asked, **_when("COMPARISON_GT", limit_gb * _GB, "ALIGN_MAX")}


def _of(resource: str, metric: str, **labels: str) -> str:
    of_labels = (f"resource.labels.{name}={json.dumps(value)}" for name, value in labels.items())
    return " AND ".join(
        (f"resource.type={json.dumps(resource)}", f"metric.type={json.dumps(metric)}", *of_labels)
    )


def _when(comparison: str, value: pulumi.Input[float], aligner: str) -> dict[str, Any]:
    return {
        "comparison": comparison,
        "threshold_value": value,
        "duration": _FOR,
        "aggregations": [_sum(aligner)],
        "trigger": {"count": 1},
    }


def _sum(aligner: str) -> dict[str, str]:
    """One figure of all series: of the targets of Lustre, of the classes of a bucket."""
    return {"alignment_period": _ALIGNED, "per_series_aligner": aligner, "cross_series_reducer": "REDUCE_SUM"}


_WHAT = {
    LUSTRE: "The fast file system is nearly full: the next checkpoint may not fit.",
    HOMES: "The home folders are nearly full: files cannot be saved when they are.",
    BUCKET: "The bucket of checkpoints holds more than the policy of the stack allows.",
}
