"""Who exchanges data over what: the nodes of a measurement, their endpoints, and one visit of a pair."""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from smoke_training.evidence.links import Broken
from smoke_training.plan import Plan
from smoke_training.probes.group import Group
from smoke_training.probes.network.endpoints import (
    Endpoint,
    GlooEndpoint,
    NcclEndpoint,
    has_endpoint,
    meeting_store,
)
from smoke_training.probes.network.tally import Counted, Half
from smoke_training.runtime import counters, heartbeat, host
from smoke_training.statistics.links import Pair

MESSAGES = 6  # of a visit

Schedule = Sequence[Sequence[Pair]]
"""Rounds of (sender, receiver); no node is in two pairs of a round."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Bytes of a message: the usual, and short ones for pairs of nodes that hardly move."""

    usual: int
    short: int
    crawling: frozenset[Pair] = frozenset()

    def of(self, pair: Pair) -> int:
        """Bytes of a message from one node to another."""
        return min(self.short, self.usual) if pair in self.crawling else self.usual


@dataclass
class _Visits:
    """One rank's halves of the visits of a schedule."""

    halves: list[Half] = field(default_factory=list)
    broken: Broken | None = None


@dataclass(frozen=True, kw_only=True)
class Arena:
    """The process group, the nodes, and this rank's endpoint (None: it only looks on)."""

    group: Group
    nodes: tuple[int, ...]
    endpoint: Endpoint | None
    interface: str | None

    @property
    def streams(self) -> int:
        """Concurrent transfers per direction of a pair."""
        return max(1, self.group.world // max(1, len(self.nodes))) if self.group.cuda else 1

    def exchange(self, schedule: Schedule, sizes: Sizes) -> tuple[list[Half], list[Broken]]:
        """Both halves of every visit of a schedule and what broke off, the same on all ranks."""
        mine = _Visits()
        if self.endpoint is not None:
            self._visit_all(self.endpoint, schedule, sizes, mine)
        every = self.group.gather(mine)
        return [half for theirs in every for half in theirs.halves], [v.broken for v in every if v.broken]

    def _visit_all(self, endpoint: Endpoint, schedule: Schedule, sizes: Sizes, mine: _Visits) -> None:
        pair: Pair | None = None
        try:
            for pairs in schedule:
                pair = next((pair for pair in pairs if self.group.node in pair), None)
                heartbeat.own().beat()
                endpoint.meet()
                if pair:
                    mine.halves.append(self._visit(endpoint, pair, sizes.of(pair)))
                else:
                    endpoint.meet()
        except RuntimeError as error:
            sender, receiver = pair or (None, None)
            mine.broken = Broken(
                node=self.group.node,
                sender=None if sender == self.group.node else sender,
                receiver=None if receiver == self.group.node else receiver,
                message=first_line(error),
            )

    def _visit(self, endpoint: Endpoint, pair: Pair, size: int) -> Half:
        """Transfer, and read the counters before and after."""
        (sender, receiver), sends = pair, pair[0] == self.group.node
        to, source = (self.nodes.index(receiver), None) if sends else (None, self.nodes.index(sender))
        before, waits, began = self._counted(), counters.waits_for_cpus(), time.perf_counter()
        seconds = endpoint.transfer(to, source, MESSAGES, size)
        elapsed, waited = time.perf_counter() - began, counters.longest_wait(waits, counters.waits_for_cpus())
        endpoint.meet()  # a sender is done before its data has left: only now has everything been counted
        return Half(
            sender=sender,
            receiver=receiver,
            sending=sends,
            seconds=seconds,
            payload_bits=MESSAGES * size * 8,
            elapsed=elapsed,
            waited=waited,
            counted=self._counted().since(before),
        )

    def _counted(self) -> Counted:
        """The counters of this node that a transfer moves."""
        if self.group.cuda:
            ports = counters.ports().values()
            return Counted(
                segments=_total(port.tx_packets for port in ports),
                retransmitted=_total(port.retransmitted for port in ports),
            )
        tcp = counters.tcp()
        received, sent = (self.interface and counters.bytes_of(self.interface)) or (None, None)
        return Counted(
            segments=tcp.sent if tcp else None,
            retransmitted=tcp.retransmitted if tcp else None,
            spurious=tcp.spurious if tcp else None,
            sent_bytes=sent,
            received_bytes=received,
        )


def nothing_between(group: Group, plan: Plan) -> str | None:
    """Why there is nothing between nodes to measure, or None."""
    if plan.nodes < 2:
        return "all ranks run on one node"
    if host.is_loopback(host.resolve(os.environ.get("MASTER_ADDR", "")) or ""):
        return "all nodes are on this machine, joined by its loopback interface"
    return None if group.world > 1 else "there is one rank"


def open_arena(group: Group, name: str, interface: str | None) -> tuple[Arena | None, list[str]]:
    """Endpoints for all nodes, or None with every node's reason; all ranks get the same answer."""
    places = group.gather((group.node, group.local_rank))
    nodes = tuple(sorted({node for node, _ in places}))
    endpoint: Endpoint | None = None
    error = None
    try:
        if group.cuda:
            endpoint = NcclEndpoint(group, [places.index((node, group.local_rank)) for node in nodes])
        elif has_endpoint(group):
            endpoint = GlooEndpoint(meeting_store(name), nodes.index(group.node), len(nodes), interface)
    except (RuntimeError, ValueError) as problem:
        error = f"node {group.node}: {first_line(problem)}"
    errors = sorted({item for item in group.gather(error) if item is not None})
    if errors:
        return None, errors
    return Arena(group=group, nodes=nodes, endpoint=endpoint, interface=interface), []


def first_line(error: Exception) -> str:
    """The first line of what an error says, at most 300 characters."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _total(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return sum(v for v in known if v is not None) if known and None not in known else None
