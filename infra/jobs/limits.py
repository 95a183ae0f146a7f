"""Limits of a managed training service that the options of a run are checked against."""

from dataclasses import dataclass


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
