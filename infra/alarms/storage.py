"""When the cloud itself tells people about storage, of which the cluster has no metric (pure)."""

from collections.abc import Mapping
from typing import Final

from infra.checkpoints import checkpoints, in_bucket
from infra.stackspec.stack import StackSpec

LEAST_FREE: Final = 0.15
"""Share of a file system below which somebody is told: as full as `VolumeFillingUp` says of volumes."""
MARGIN: Final = 2.0
"""The bucket may hold so many times what one run on the largest pool leaves there: a second one beside it is
usual; more is a run that deletes nothing, or a policy that is not the one people train by. An assumption of
2026-11-26, until a stack has its own history."""


def bucket_limits_gb(spec: StackSpec) -> Mapping[int, float]:
    """GB by storage class (`infra.checkpoints.Held.where`) above which somebody is told.

    Nothing where no model is named: then nobody knows what is much.
    """
    size = checkpoints(spec).size_gb
    if size is None:
        return {}
    limits: dict[int, float] = {}
    for held in in_bucket(spec):
        limits[held.where] = limits.get(held.where, 0.0) + MARGIN * held.count * size
    return limits


def on_aws(spec: StackSpec) -> bool:
    """Whether a stack on AWS has such alarms; EFS grows by itself and needs none."""
    return spec.data.shared_fs is not None or bool(bucket_limits_gb(spec))


def on_gcp(spec: StackSpec) -> bool:
    """Whether a stack on Google Cloud has such alerts; Filestore has a size."""
    return on_aws(spec) or spec.data.homes
