"""Records of network traffic: between pairs of nodes, over each rail, and during the collectives."""

from collections.abc import Mapping
from dataclasses import dataclass

from smoke_training.evidence.registry import Record, kind
from smoke_training.nccl.log import LogFacts


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One direction of one pair of nodes; every series has one value per visit.

    `gbit_s` is payload over the time from when the receiver was ready until it had everything. `segments` are
    TCP segments or packets that the sender's node sent during the visit, `retransmitted` those it sent again,
    `spurious` of them the ones that the receiver reported as duplicates. `sent_bytes` and `received_bytes`
    are what the interfaces of the two ends counted. A series is None where the kernel does not count it.
    `lanes_gbit_s` has a series for each local rank where nodes have several that exchange data at once.
    """

    sender: int  # node
    receiver: int  # node
    gbit_s: tuple[float, ...]
    starved: tuple[float, ...] | None  # share of the visit in which a thread of an end waited for a CPU
    segments: tuple[int, ...] | None
    retransmitted: tuple[int, ...] | None
    spurious: tuple[int, ...] | None
    sent_bytes: tuple[int, ...] | None
    received_bytes: tuple[int, ...] | None
    serial_gbit_s: tuple[float, ...] = ()  # the same while no other pair exchanged anything
    serial_starved: tuple[float, ...] | None = None
    lanes_gbit_s: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A transfer that did not complete."""

    node: int  # where it was detected
    sender: int | None
    receiver: int | None
    message: str


@kind("tournament")
class Tournament(Record):
    """Pairs of `nodes` in rounds of disjoint pairs, over one interface (None: the backend's choice).

    Every pair up to 16 nodes, above it a sample: `cells` holds the directions that were measured.
    """

    phase: str  # pairs | rails
    nodes: tuple[int, ...]
    interface: str | None
    backend: str
    streams: int  # concurrent transfers per direction: one per local rank on accelerators
    message_bytes: int
    seconds: float
    counter: str  # what segments are: tcp | efa | none
    cells: tuple[Cell, ...]
    broken: tuple[Broken, ...] = ()


@kind("pairs_skipped")
class PairsSkipped(Record):
    """Reason why no links between nodes were measured."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class RailEnd:
    """One node's interface: its state, and which nodes responded over it (None: not probed).

    `short` are those that responded, but did not receive frames of full size.
    """

    node: int
    exists: bool
    up: bool | None
    running: bool | None
    carrier: int | None
    operstate: str | None
    speed_mbit_s: int | None
    carrier_changes: int | None
    address: str | None
    reached: Mapping[str, bool]  # node -> whether a connection to it was established
    tx_bytes: int | None  # during this rail's all-reduces
    rx_bytes: int | None
    short: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Rail:
    """One rail by itself: an all-reduce of `size_bytes` among one rank per node, seconds per repetition."""

    name: str
    ends: tuple[RailEnd, ...]
    size_bytes: int | None
    seconds: tuple[float, ...]
    error: str | None


@kind("rails")
class Rails(Record):
    """All rails of the plan; on accelerators one group per local rank stands for a rail."""

    backend: str
    rails: tuple[Rail, ...]


@dataclass(frozen=True, kw_only=True)
class NodeTraffic:
    """Bytes that one node's adapters counted during known collectives, and its network settings.

    `inactive` are the RDMA ports that the kernel did not report as active afterwards.
    """

    node: int
    tx_bytes: Mapping[str, int]  # interface -> bytes
    rx_bytes: Mapping[str, int]
    port_tx_bytes: Mapping[str, int]  # RDMA port -> bytes
    port_rx_bytes: Mapping[str, int]
    segments: int | None
    retransmitted: int | None
    spurious: int | None
    environment: Mapping[str, str]
    inactive: tuple[str, ...] = ()


@kind("traffic")
class Traffic(Record):
    """All-reduces of all ranks: `operations` of `size_bytes`, `seconds` in total.

    `phase_tx_bytes` are the bytes that each interface of each node sent during the whole collectives phase.
    """

    operations: int
    size_bytes: int
    seconds: float
    backend: str
    nodes: tuple[NodeTraffic, ...]
    nothing_between: str | None  # why no wire lies between the nodes, if none does
    phase_seconds: float
    phase_tx_bytes: tuple[Mapping[str, int], ...]


@kind("nccl_log")
class NcclLog(LogFacts, Record):
    """Facts about transport in the NCCL log of one node."""

    node: int
