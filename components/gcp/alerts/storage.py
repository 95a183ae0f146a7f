"""Mail about storage that no metric of the cluster shows, or none while nothing in it watches."""

import json
from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.alerts.policies import PolicyArgs, mail_policy, told
from components.runbooks import BUCKET, HOMES, LUSTRE, page_of_storage

_GIB, _GB = 2**30, 10**9
# Samples come every minute, of the bucket's size once a day, repeated. Source of the metrics: Google Cloud
# documentation, "Google Cloud metrics" (lustre, file, storage), read 2026-11-26.
_ALIGNED, _FOR = "300s", "900s"
_LUSTRE = "lustre.googleapis.com/Instance"
# Each target (OST) says what it has left; the documents call those of metadata "mdt", the others not at all.
_DATA = 'metric.labels.component!="mdt"'


class WatchedLustreArgs(TypedDict):
    """A Managed Lustre instance, and how much of it has to be free."""

    instance: pulumi.Input[str]
    """`projects/<project>/locations/<zone>/instances/<name>`."""
    least_free: float
    """Share of its space, 0 to 1, below which people are told."""


class WatchedHomesArgs(TypedDict):
    """A Filestore instance, and how much may be in it."""

    instance: pulumi.Input[str]
    """Its name."""
    location: str
    """Its zone, or the region."""
    limit_gib: float
    """GiB above which people are told."""


class GcpStorageAlertsArgs(TypedDict):
    """What is watched, and who is told."""

    emails: Sequence[str]
    """Addresses that get the alerts, one to sixteen."""
    lustre: NotRequired[WatchedLustreArgs]
    """Default: there is none."""
    homes: NotRequired[WatchedHomesArgs]
    """Default: there are none."""
    checkpoint_bucket: pulumi.Input[str]
    checkpoint_limit_gb: NotRequired[float]
    """GB (1e9 bytes) of checkpoints, of all storage classes, above which people are told, with what was
    deleted and can be restored. Default: nobody knows how large checkpoints are."""


class GcpStorageAlerts(Component):
    """Policies that need no cluster: file systems nearly full, and more checkpoints than the policy leaves.

    The driver of Managed Lustre reports no volumes to the kubelet. That of Filestore does, for claims that a
    pod mounts, to a monitoring that may not be there. Raises UserError for addresses that make no sense.
    *Untested in a real project.*
    """

    policies: pulumi.Output[Sequence[str]]
    """Names of the policies."""

    def __init__(
        self, name: str, args: GcpStorageAlertsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        people = told(self, name, args["emails"], f"{name}.emails")
        made: list[gcp.monitoring.AlertPolicy] = []
        if "lustre" in args:
            made.append(self._policy(f"{name}-lustre", LUSTRE, _lustre(args["lustre"]), people))
        if "homes" in args:
            made.append(self._policy(f"{name}-homes", HOMES, _homes(args["homes"]), people))
        if "checkpoint_limit_gb" in args:
            bucket = _bucket(args["checkpoint_bucket"], args["checkpoint_limit_gb"])
            made.append(self._policy(f"{name}-checkpoints", BUCKET, bucket, people))
        self.policies = pulumi.Output.all(*(policy.name for policy in made))
        self.register_outputs({"policies": self.policies})

    def _policy(
        self, name: str, alert: str, threshold: Any, people: Sequence[pulumi.Input[str]]
    ) -> gcp.monitoring.AlertPolicy:
        asked: PolicyArgs = {
            "title": f"{name}: {alert}",
            "condition": {"display_name": alert, "condition_threshold": threshold},
            "documentation": DOCUMENTATION[alert],
        }
        return mail_policy(self, name, asked, people)


def _lustre(wanted: WatchedLustreArgs) -> dict[str, Any]:
    """What is left, as a share of what there is: usable space is less than what the instance is sold as."""

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
    """Bytes, not the percentage: documents leave open whether that ends at 1 or at 100."""
    asked = pulumi.Output.from_input(wanted["instance"]).apply(
        lambda name: _of(
            "filestore_instance",
            "file.googleapis.com/nfs/server/used_bytes",
            location=wanted["location"],
            instance_name=name,
        )
    )
    return {"filter": asked, **_when("COMPARISON_GT", wanted["limit_gib"] * _GIB, "ALIGN_MEAN")}


def _bucket(bucket: pulumi.Input[str], limit_gb: float) -> dict[str, Any]:
    """Every storage class, and what was deleted: all of it is stored."""
    metric = "storage.googleapis.com/storage/v2/total_bytes"
    asked = pulumi.Output.from_input(bucket).apply(lambda name: _of("gcs_bucket", metric, bucket_name=name))
    return {"filter": asked, **_when("COMPARISON_GT", limit_gb * _GB, "ALIGN_MAX")}


def _of(resource: str, metric: str, **labels: str) -> str:
    of_labels = (f"resource.labels.{name}={json.dumps(value)}" for name, value in labels.items())
    return " AND ".join(
        (f"resource.type={json.dumps(resource)}", f"metric.type={json.dumps(metric)}", *of_labels)
    )


def _when(comparison: str, value: float, aligner: str) -> dict[str, Any]:
    return {
        "comparison": comparison,
        "threshold_value": value,
        "duration": _FOR,
        "aggregations": [_sum(aligner)],
        "trigger": {"count": 1},
    }


def _sum(aligner: str) -> dict[str, str]:
    """One figure of all series: of the targets of Lustre, of the classes of a bucket."""
    return {
        "alignment_period": _ALIGNED,
        "per_series_aligner": aligner,
        "cross_series_reducer": "REDUCE_SUM",
    }


_WHAT = {
    LUSTRE: "The fast file system is nearly full: the next checkpoint may not fit.",
    HOMES: "The home folders are nearly full: nobody can save a file when they are.",
    BUCKET: "The bucket of checkpoints holds more than the policy of the stack leaves there.",
}
DOCUMENTATION = {
    alert: f"{text}\n\nWhat it means and what to do first: {page_of_storage(alert)}\n"
    for alert, text in _WHAT.items()
}
