"""What the two ends of a transfer saw becomes one value of a cell's series (pure)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from smoke_training.evidence.links import Cell
from smoke_training.statistics.links import Pair

T = TypeVar("T", int, float)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What a node's adapters counted since some moment, or between two; None where the kernel does not."""

    segments: int | None = None
    retransmitted: int | None = None
    spurious: int | None = None
    sent_bytes: int | None = None
    received_bytes: int | None = None

    def since(self, before: "Counted") -> "Counted":
        """What was counted after `before`."""
        return Counted(**{name: _moved(getattr(before, name), now) for name, now in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class Half:
    """One end of one transfer. Nodes by number; `seconds` is known to the receiver only."""

    sender: int
    receiver: int
    sending: bool
    seconds: float | None
    payload_bits: int  # that arrived in `seconds`
    elapsed: float
    waited: float | None  # seconds in which the most starved thread waited for a CPU
    counted: Counted


@dataclass(frozen=True)
class _Visit:
    gbit_s: float
    starved: float | None
    sent: Counted
    received: Counted


class Tally:
    """Series of all cells; `add` takes the halves of one repetition of the schedule from every rank."""

    def __init__(self) -> None:
        self._visits: dict[Pair, list[_Visit]] = {}
        self._serial: dict[Pair, list[_Visit]] = {}

    def add(self, halves: Iterable[Half], *, serial: bool = False) -> None:
        """Append one visit per pair that both ends report; a visit that one end lost is not counted."""
        found: dict[Pair, list[Half]] = {}
        for half in halves:
            found.setdefault((half.sender, half.receiver), []).append(half)
        for pair, both in sorted(found.items()):
            sent = [half for half in both if half.sending]
            received = [half for half in both if not half.sending and half.seconds]
            if sent and received:
                visits = self._serial if serial else self._visits
                visits.setdefault(pair, []).append(_visit(sent, received))

    def cells(self) -> tuple[Cell, ...]:
        """Everything so far."""
        return tuple(
            _cell(pair, visits, self._serial.get(pair, [])) for pair, visits in sorted(self._visits.items())
        )


def _visit(sent: Sequence[Half], received: Sequence[Half]) -> _Visit:
    shares = [half.waited / half.elapsed for half in (*sent, *received) if half.waited is not None]
    return _Visit(
        gbit_s=sum(half.payload_bits / (half.seconds or 1.0) for half in received) / 1e9,
        starved=max(shares) if len(shares) == len(sent) + len(received) else None,
        sent=sent[0].counted,  # ranks of one node read the same counters, so one of them speaks for all
        received=received[0].counted,
    )


def _cell(pair: Pair, visits: Sequence[_Visit], serial: Sequence[_Visit]) -> Cell:
    return Cell(
        sender=pair[0],
        receiver=pair[1],
        gbit_s=tuple(visit.gbit_s for visit in visits),
        starved=_complete([visit.starved for visit in visits]),
        segments=_complete([visit.sent.segments for visit in visits]),
        retransmitted=_complete([visit.sent.retransmitted for visit in visits]),
        spurious=_complete([visit.sent.spurious for visit in visits]),
        sent_bytes=_complete([visit.sent.sent_bytes for visit in visits]),
        received_bytes=_complete([visit.received.received_bytes for visit in visits]),
        serial_gbit_s=tuple(visit.gbit_s for visit in serial),
        serial_starved=_complete([visit.starved for visit in serial]),
    )


def _complete(values: Sequence[T | None]) -> tuple[T, ...] | None:
    """The series; None if any value of it is unknown."""
    known = tuple(value for value in values if value is not None)
    return known if known and len(known) == len(values) else None


def _moved(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else max(0, now - before)
