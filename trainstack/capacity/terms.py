"""Each commitment over its term: held hours, hours paid and not held, and what is to come (pure)."""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainstack.capacity.classes import PoolCapacity
from trainstack.capacity.history import History
from trainstack.capacity.months import held_on


@dataclass(frozen=True)
class CommitmentUse:
    """A commitment, in the part of its term that the ledger covers. Hours are GPU-hours."""

    pool: str
    path: str
    machine: str
    kind: str
    reservation: str | None
    nodes: int
    start: datetime.datetime | None
    """Of the commitment; None: unknown."""
    end: datetime.datetime | None
    """None: without an end, or unknown."""
    committed_hours: float
    held_hours: float
    usd_per_hour: float | None
    """US dollars per GPU-hour, paid in any case; None: unknown."""
    to_come_hours: float | None
    """Committed hours after the end of the ledger; None: without an end."""

    @property
    def unused_hours(self) -> float:
        """Committed hours that no job held."""
        return self.committed_hours - self.held_hours

    @property
    def utilization(self) -> float | None:
        """None before its start."""
        return self.held_hours / self.committed_hours if self.committed_hours else None

    @property
    def unused_usd(self) -> float | None:
        """Paid for hours that no job held; None without a price."""
        return None if self.usd_per_hour is None else self.unused_hours * self.usd_per_hour

    @property
    def to_come_usd(self) -> float | None:
        """Committed and not yet passed; None without an end or a price."""
        known = self.to_come_hours is not None and self.usd_per_hour is not None
        return self.to_come_hours * self.usd_per_hour if known else None  # type: ignore[operator]


def commitment_uses(pools: Sequence[PoolCapacity], past: History) -> Iterator[CommitmentUse]:
    """Every pool with a commitment, in the order of the stack file."""
    for pool in pools:
        if not pool.nodes:
            continue
        committed = held = 0.0
        for start, end in past.months.values():
            for _, hours, used in held_on(pool, past, start, end):
                committed, held = committed + hours, held + used
        rate, last = pool.rates["own"], pool.period.end
        yield CommitmentUse(
            pool=pool.pool,
            path=pool.path,
            machine=pool.machine,
            kind=pool.commitment,
            reservation=pool.reservation,
            nodes=pool.nodes,
            start=pool.period.start,
            end=last,
            committed_hours=committed,
            held_hours=held,
            usd_per_hour=rate.usd if rate else None,
            to_come_hours=None if last is None else pool.committed(min(past.end, last), last),
        )
