"""Limits of SageMaker."""

from typing import Final

from infra.jobs.limits import ServiceLimits

LIMITS: Final = ServiceLimits(
    scheme="s3://",
    # Developer guide, "Train Using SageMaker Managed Warm Pools".
    keep_warm_minutes=60,
    keep_warm_rule="SageMaker keeps machines for an hour at most",
    searches=True,
)
