"""Reserved capacity as a cloud describes it."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from trainstack.ledger.periods import TimeSpan


@dataclass(frozen=True)
class CapacitySegment:
    """Nodes that are reserved for one period; a training plan can have several with gaps between them."""

    span: TimeSpan
    nodes: int


@dataclass(frozen=True)
class ReservedCapacity:
    """A reservation, a block or a training plan, read from the cloud."""

    id: str
    """As the stack file names it."""
    status: str
    """In the cloud's own word."""
    machine: str
    segments: Sequence[CapacitySegment]
    free: int | None = None
    """Nodes that no machine uses now; None: not described."""
    unhealthy: int = 0
    """Nodes that are paid and cannot be used now."""
    fee_usd: float | None = None
    """Paid in advance for all segments; None: billed by the hour, or not described."""
    locked_until: datetime.datetime | None = None
    """Until then `locked_nodes` cannot be given back: the commitment of a future-dated reservation of AWS."""
    locked_nodes: int = 0

    @property
    def span(self) -> TimeSpan:
        """From the first start to the last end; None: open."""
        starts = [one.span.start for one in self.segments]
        ends = [one.span.end for one in self.segments]
        known_starts = [one for one in starts if one is not None]
        known_ends = [one for one in ends if one is not None]
        return TimeSpan(
            min(known_starts) if starts and len(known_starts) == len(starts) else None,
            max(known_ends) if ends and len(known_ends) == len(ends) else None,
        )

    @property
    def nodes(self) -> int:
        """The most nodes at one time, as segments of one reservation do not overlap."""
        return max((one.nodes for one in self.segments), default=0)
