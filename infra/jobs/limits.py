"""Limits of a managed training service that the options of a run are checked against."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class ServiceLimits:
    """Limits of one service."""

    scheme: str
    """Of URIs of its object store."""
    keep_warm_minutes: int
    """The longest that machines can be kept after a job; 0: they cannot."""
    keep_warm_rule: str
    """Reason, for an error."""
    searches: bool
    """Whether it searches hyperparameters itself."""


LIMITS: Final[Mapping[str, ServiceLimits]] = {
    "sagemaker": ServiceLimits(
        scheme="s3://",
        # Developer guide, "Train Using SageMaker Managed Warm Pools".
        keep_warm_minutes=60,
        keep_warm_rule="SageMaker keeps machines for an hour at most",
        searches=True,
    ),
    "vertex": ServiceLimits(
        scheme="gs://",
        keep_warm_minutes=0,
        keep_warm_rule="Vertex AI keeps no machines of a job; "
        "a persistent resource would, and is billed all day",
        searches=False,
    ),
}
MOST_OF_A_SEARCH = 32
"""Characters of a search's name on SageMaker (HyperParameterTuningJobName of its API)."""
