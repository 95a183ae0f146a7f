"""When a pool may be used, as plain data: what a stack says, and what its program is told."""

import json
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from infra.naming import flavor_name


class BlockArgs(TypedDict):
    """Capacity with a beginning and an end."""

    starts: str
    """When it begins, as RFC 3339 writes it in UTC: `2026-12-01T11:30:00Z`."""
    ends: str
    """When it ends."""
    drain_minutes: int
    """How long before the end no job may run any more."""


class HoursArgs(TypedDict):
    """Hours of the week in which some jobs may use a pool that others use at any time. UTC."""

    days: Sequence[str]
    """Days on which they begin: `MO`, `TU`, `WE`, `TH`, `FR`, `SA`, `SU`."""
    start: str
    """When they begin, such as `20:00`."""
    hours: int
    """For how long, less than a day."""
    classes: Sequence[str]
    """The priority classes of the jobs that are held to them."""


class WindowArgs(TypedDict):
    """When jobs may use a pool."""

    block: NotRequired[BlockArgs]
    """Default: its capacity has no end."""
    hours: NotRequired[HoursArgs]
    """Default: every job uses it at any time."""


def window_check(pool: str) -> str:
    """The AdmissionCheck of a pool with a window. Raises ValueError as `flavor_name` does."""
    return f"window-{flavor_name(pool)}"


def settings(windows: Mapping[str, WindowArgs]) -> str:
    """What the program is told (`windows.read`): rows by the name of the check, of windows by the pool's."""
    rows = {window_check(pool): {"pool": pool, **window} for pool, window in windows.items()}
    return json.dumps(rows, sort_keys=True)
