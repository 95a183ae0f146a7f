"""Tables of the queue: running jobs, waiting jobs, pools."""

import datetime
from collections.abc import Iterator, Sequence

from trainstack.queues.bound import fewest
from trainstack.queues.estimates import Estimate
from trainstack.queues.pools import Pool
from trainstack.queues.report import Report, Running, Waiting
from trainstack.queues.state import Moment

_NONE = "-"


Table = tuple[str, Sequence[str], list[tuple[str, ...]]]
"""Title, columns and rows."""


def tables(found: Report) -> Iterator[Table]:
    """The tables of running jobs, waiting jobs and pools; times are in UTC."""
    now = found.taken
    yield (
        f"running ({len(found.running)})",
        ("job", "team", "GPUs", "pool", "since", "ends by"),
        [
            (one.job, one.team, str(one.gpus), ", ".join(one.pools), _when(one.since, now),
             _ends(one, now))
            for one in found.running
        ],
    )  # fmt: skip
    yield (
        f"waiting ({len(found.waiting)})",
        ("place", "job", "team", "GPUs", "queue", "since", "starts", "why"),
        [
            (_place(one), one.job, one.team, str(one.gpus), one.queue, _when(one.since, now),
             _starts(one.estimate, now), one.reason.words())
            for one in found.waiting
        ],
    )  # fmt: skip
    yield (
        f"pools ({len(found.pools)})",
        ("pool", "GPUs", "used", "free", "nodes up", "free there", "on one node", "fragmented", "stranded"),
        [
            (one.name, *map(str, (one.gpus, one.used, one.free)),
             _count(one.nodes), _free(one), _count(one.largest_free),
             *map(_share, (one.fragmentation, one.stranded)))
            for one in found.pools
        ],
    )  # fmt: skip


def _place(one: Waiting) -> str:
    if one.place is None:
        return _NONE
    return f"{'' if one.place.reported else '~'}{one.place.number}"


def _starts(estimate: Estimate | None, now: Moment) -> str:
    if estimate is None:
        return _NONE
    if estimate.start is None:
        return f"unknown ({estimate.waits} of {fewest()} waits)"
    if estimate.kind == "simulated":
        return f"{_when(estimate.start, now)} (simulated)"
    late = f"; {estimate.why}" if estimate.why else ""
    return f"by {_when(estimate.start, now)} (95 %, {estimate.waits} waits{late})"


def _ends(one: Running, now: Moment) -> str:
    if one.ends_by is None:
        return "no deadline"
    return f"{_when(one.ends_by, now)}{' (by default)' if one.by_default else ''}"


def _when(moment: Moment, now: Moment) -> str:
    """A time, with its date if it is not of the same day."""
    at = moment.astimezone(datetime.UTC)
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%m-%d %H:%M}"


def _free(one: Pool) -> str:
    """The free GPUs on nodes, of each zone where the nodes are in several."""
    zones = one.free_by_zone or {}
    parts = ", ".join(f"{zone} {gpus}" for zone, gpus in zones.items())
    return f"{_count(one.free_on_nodes)}{f' ({parts})' if len(zones) > 1 else ''}"


def _count(value: int | None) -> str:
    return "?" if value is None else str(value)


def _share(value: float | None) -> str:
    return _NONE if value is None else f"{value:.0%}"
