"""Retention policy of checkpoints (pure): the latest ones, and the first of every period."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from smoke_training.checkpoint_policy import INTERVAL_S, KEEP_EVERY_HOURS, KEEP_LAST


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Checkpoints to keep. ValueError if none would be: the newest checkpoint always stays."""

    keep_last: int | None
    """Number of latest checkpoints; None: all."""
    keep_every_s: float | None = None
    """Besides these, the first one of every period, in seconds; None: no others."""
    interval_s: float | None = None
    """Seconds between two, as the stack requests it; None without a request."""

    def __post_init__(self) -> None:
        if self.keep_last is not None and self.keep_last < 1:
            raise ValueError(f"keep_last: got {self.keep_last}; at least 1, or a run could not go on")
        for name, value in (("keep_every_s", self.keep_every_s), ("interval_s", self.interval_s)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name}: got {value}; must be more than 0 seconds")

    def kept(self, written: Mapping[int, float]) -> frozenset[int]:
        """Return the steps to keep of those `written` (step -> time of completion, in seconds).

        The first of a period always stays, so a deletion never changes a later decision.
        """
        if self.keep_last is None:
            return frozenset(written)
        steps = sorted(written)
        found = set(steps[-self.keep_last :])
        if self.keep_every_s is not None:
            periods: set[int] = set()
            for step in steps:
                period = math.floor(written[step] / self.keep_every_s)
                if period not in periods:
                    periods.add(period)
                    found.add(step)
        return frozenset(found)


def retention(environment: Mapping[str, str] = os.environ) -> Retention:
    """Read the stack's policy from the variables of a pod; without any, every checkpoint stays.

    ValueError, with the variable, for a value that is no number or too small.
    """
    last, hours, interval = (environment.get(name) for name in (KEEP_LAST, KEEP_EVERY_HOURS, INTERVAL_S))
    try:
        return Retention(
            keep_last=int(last) if last else None,
            keep_every_s=float(hours) * 3600 if hours else None,
            interval_s=float(interval) if interval else None,
        )
    except ValueError as error:
        message = f"{KEEP_LAST}={last}, {KEEP_EVERY_HOURS}={hours}, {INTERVAL_S}={interval}"
        raise ValueError(f"{message}: {error}") from error
