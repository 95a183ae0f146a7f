"""Times as the API server writes them; standard library only."""

import datetime


def seconds(stamp: str) -> int:
    """A time of the API, such as 2026-11-25T20:00:00Z, in whole seconds since 1970. Raises ValueError."""
    return int(datetime.datetime.fromisoformat(stamp).timestamp())


def stamp(at: float) -> str:
    """Seconds since 1970 as the API writes a time; parts of a second are left out."""
    return f"{datetime.datetime.fromtimestamp(at, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
