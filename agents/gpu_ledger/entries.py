"""Entries of a book: open attempts and lines of the audit trail. Pure; runs in a pod."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.gpu_ledger.attempts import Seen, Shares, days
from agents.gpu_ledger.row import Key

# Of a text that members choose, such as the name of a Workload.
MOST_LETTERS = 500


@dataclass(frozen=True)
class Open:
    """An attempt that is running."""

    name: str
    project: str
    admitted: int
    since: int
    """It is booked until this time."""
    ready: int | None
    """Since when its pods are ready, in the part that is not booked yet."""
    shares: Shares
    done: int
    past_s: int
    left_s: int | None
    """Seconds from its admission after which Kueue ends it."""

    def may_take_s(self, now: int, until: int) -> int | None:
        """Most seconds that it may run before `until`; None without a limit."""
        return None if self.left_s is None else max(0, min(self.admitted + self.left_s, until) - now)


@dataclass(frozen=True)
class Note:
    """One line of the audit trail."""

    at: int
    what: str
    """held, started, exempt, warned, clock, uncertain."""
    who: str
    """A Workload, or a budget."""
    why: str


def digest(uid: str) -> str:
    """A short name of a Workload: ten thousand of them have one in common with a chance of 1 : 20,000."""
    return hashlib.sha256(uid.encode()).hexdigest()[:10]


def begun(seen: Seen, project: str) -> Open:
    """The attempt that began with the admission of a Workload."""
    assert seen.admitted is not None
    return Open(
        name=seen.name[:MOST_LETTERS],
        project=project,
        admitted=seen.admitted,
        since=seen.admitted,
        ready=None,
        shares=seen.asked,
        done=0,
        past_s=seen.past_s,
        left_s=seen.left_s,
    )


def add(rows: dict[Key, tuple[int, int]], attempt: Open, until: int) -> None:
    """Add the held devices of an attempt since its last booking."""
    for day, since, end in days(attempt.since, until):
        ran = 0 if attempt.ready is None else max(0, end - max(since, attempt.ready))
        for (pool, resource), amount in attempt.shares.items():
            held, running = rows.get(key := (day, attempt.project, pool, resource), (0, 0))
            rows[key] = (held + amount * (end - since), running + amount * ran)


def plain(attempt: Open) -> dict[str, Any]:
    """An attempt as JSON; `parsed` reads it."""
    return {
        **{key: value for key, value in vars(attempt).items() if key != "shares"},
        "shares": [[*key, amount] for key, amount in sorted(attempt.shares.items())],
    }


def parsed(row: Mapping[str, Any]) -> Open:
    """The attempt of a row of `plain`."""
    return Open(**{**row, "shares": {(pool, resource): amount for pool, resource, amount in row["shares"]}})
