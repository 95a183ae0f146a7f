"""Storage alarms of the cloud, for storage without metrics in the cluster (pure)."""

from collections.abc import Mapping
from typing import Final

from infra.checkpoints import checkpoints, in_bucket
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.stack import StackSpec

LEAST_FREE: Final = 0.15
"""Free share of a file system below which an alarm fires: as for volumes in `VolumeFillingUp`."""
MARGIN: Final = 2.0
"""Multiple of what one run on the largest pool keeps in the bucket before an alarm fires: a second run is
usual; more means a run that deletes nothing, or a checkpoint policy that jobs do not follow. An assumption of
2026-11-26, until a stack has its own history."""


def bucket_limits_gb(spec: StackSpec) -> Mapping[int, float]:
    """GB by storage class (`infra.checkpoints.Held.where`) above which an alarm fires.

    Empty without a model: then the expected size is unknown.
    """
    size = checkpoints(spec).size_gb
    if size is None:
        return {}
    limits: dict[int, float] = {}
    for held in in_bucket(spec):
        limits[held.where] = limits.get(held.where, 0.0) + MARGIN * held.count * size
    return limits


def runbooks_url(spec: StackSpec) -> str | None:
    """Address of the folder of runbook pages; None without one."""
    monitoring = spec.layout.monitoring if isinstance(spec.layout, ClusterLayout) else None
    return None if monitoring is None or monitoring.kind == "none" else monitoring.runbooks_url


def on_aws(spec: StackSpec) -> bool:
    """Return whether a stack on AWS has such alarms; EFS grows automatically and needs none."""
    return spec.data.shared_fs is not None or bool(bucket_limits_gb(spec))


def on_gcp(spec: StackSpec) -> bool:
    """Return whether a stack on Google Cloud has such alerts; Filestore has a size."""
    return on_aws(spec) or spec.data.homes
