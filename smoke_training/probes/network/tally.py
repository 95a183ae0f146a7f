"""What the two ends of a transfer saw becomes one value of a cell's series (pure)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from smoke_training.evidence.links import Cell

Pair = tuple[int, int]
T = TypeVar("T", int, float)


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
    segments: int | None = None
    retransmitted: int | None = None
    spurious: int | None = None
    moved_bytes: int | None = None  # sent by the sender's interface, received by the receiver's


@dataclass
class _Series:
    gbit_s: list[float] = field(default_factory=list)
    starved: list[float | None] = field(default_factory=list)
    segments: list[int | None] = field(default_factory=list)
    retransmitted: list[int | None] = field(default_factory=list)
    spurious: list[int | None] = field(default_factory=list)
    sent_bytes: list[int | None] = field(default_factory=list)
    received_bytes: list[int | None] = field(default_factory=list)


class Tally:
    """Series of all cells; `add` takes the halves of one lap from every rank."""

    def __init__(self) -> None:
        self._cells: dict[Pair, _Series] = {}
        self._serial: dict[Pair, _Series] = {}

    def add(self, halves: Iterable[Half], *, serial: bool = False) -> None:
        """Append one visit per pair that both ends report; a visit that one end lost is not counted."""
        found: dict[Pair, list[Half]] = {}
        for half in halves:
            found.setdefault((half.sender, half.receiver), []).append(half)
        for pair, both in sorted(found.items()):
            sent = [half for half in both if half.sending]
            received = [half for half in both if not half.sending and half.seconds]
            if sent and received:
                series = (self._serial if serial else self._cells).setdefault(pair, _Series())
                _append(series, sent, received)

    def cells(self) -> tuple[Cell, ...]:
        """Everything so far."""
        return tuple(
            _cell(pair, series, self._serial.get(pair, _Series()))
            for pair, series in sorted(self._cells.items())
        )


def _append(series: _Series, sent: Sequence[Half], received: Sequence[Half]) -> None:
    series.gbit_s.append(sum(half.payload_bits / (half.seconds or 1.0) for half in received) / 1e9)
    shares = [half.waited / half.elapsed for half in (*sent, *received) if half.waited is not None]
    series.starved.append(max(shares) if len(shares) == len(sent) + len(received) else None)
    # Ranks of one node read the same counters, so one of them speaks for all.
    series.segments.append(sent[0].segments)
    series.retransmitted.append(sent[0].retransmitted)
    series.spurious.append(sent[0].spurious)
    series.sent_bytes.append(sent[0].moved_bytes)
    series.received_bytes.append(received[0].moved_bytes)


def _cell(pair: Pair, series: _Series, serial: _Series) -> Cell:
    return Cell(
        sender=pair[0],
        receiver=pair[1],
        gbit_s=tuple(series.gbit_s),
        starved=_complete(series.starved),
        segments=_complete(series.segments),
        retransmitted=_complete(series.retransmitted),
        spurious=_complete(series.spurious),
        sent_bytes=_complete(series.sent_bytes),
        received_bytes=_complete(series.received_bytes),
        serial_gbit_s=tuple(serial.gbit_s),
        serial_starved=_complete(serial.starved),
    )


def _complete(values: Sequence[T | None]) -> tuple[T, ...] | None:
    """The series, or None if any of it is unknown: half a count is no count."""
    known = tuple(value for value in values if value is not None)
    return known if known and len(known) == len(values) else None
