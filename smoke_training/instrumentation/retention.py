"""Which checkpoints of a run stay (pure): the latest ones, and the first of every so many hours."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from smoke_training.launchers.checkpoint_policy import INTERVAL_S, KEEP_EVERY_HOURS, KEEP_LAST


@dataclass(frozen=True, kw_only=True)
class Retention:
    """What stays. ValueError where nothing would: the newest checkpoint is never given up."""

    keep_last: int | None
    """How many of the latest; None: all of them."""
    keep_every_s: float | None = None
    """Besides these, the first one of every period of so many seconds; None: no others."""
    interval_s: float | None = None
    """Seconds between two, as the stack wants it; None where it says nothing."""

    def __post_init__(self) -> None:
        if self.keep_last is not None and self.keep_last < 1:
            raise ValueError(f"keep_last: got {self.keep_last}; at least 1, or a run could not go on")
        for name, value in (("keep_every_s", self.keep_every_s), ("interval_s", self.interval_s)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name}: got {value}; must be more than 0 seconds")

    def kept(self, written: Mapping[int, float]) -> frozenset[int]:
        """The steps that stay of those `written`, by step the time at which each was whole, in seconds.

        The first of a period stays for good, so what is given up now changes no later answer.
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
    """What the stack says in the variables of a pod; where it says nothing, everything stays.

    ValueError, with the variable, for what is no number or too small.
    """
    last, hours, interval = (environment.get(name) for name in (KEEP_LAST, KEEP_EVERY_HOURS, INTERVAL_S))
    try:
        return Retention(
            keep_last=int(last) if last else None,
            keep_every_s=float(hours) * 3600 if hours else None,
            interval_s=float(interval) if interval else None,
        )
    except ValueError as error:
        said = f"{KEEP_LAST}={last}, {KEEP_EVERY_HOURS}={hours}, {INTERVAL_S}={interval}"
        raise ValueError(f"{said}: {error}") from error
