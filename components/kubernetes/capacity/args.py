"""Times at which a pool may be used, as plain data: arguments of the stack, settings of the program."""

import json
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from infra.naming import flavor_name


class BlockArgs(TypedDict):
    """Capacity with a beginning and an end."""

    starts: str
    """Its start, in RFC 3339 and UTC: `2026-12-01T11:30:00Z`."""
    ends: str
    """Its end."""
    drain_minutes: int
    """Minutes before the end from which no job may run."""


class HoursArgs(TypedDict):
    """Hours of the week in which some jobs may use a pool that others use at any time. UTC."""

    days: Sequence[str]
    """Days on which they begin: `MO`, `TU`, `WE`, `TH`, `FR`, `SA`, `SU`."""
    start: str
    """Time of their begin, such as `20:00`."""
    hours: int
    """For how long, less than a day."""
    classes: Sequence[str]
    """The priority classes that the hours apply to."""


class WindowArgs(TypedDict):
    """Times at which jobs may use a pool."""

    block: NotRequired[BlockArgs]
    """Default: its capacity has no end."""
    hours: NotRequired[HoursArgs]
    """Default: all jobs may use it at any time."""


def window_check(pool: str) -> str:
    """The AdmissionCheck of a pool with a window. Raises ValueError as `flavor_name` does."""
    return f"window-{flavor_name(pool)}"


def settings(windows: Mapping[str, WindowArgs]) -> str:
    """Settings of the program (`windows.read`): rows by the name of the check, from windows by the pool's."""
    rows = {window_check(pool): {"pool": pool, **window} for pool, window in windows.items()}
    return json.dumps(rows, sort_keys=True)
