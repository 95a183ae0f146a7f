"""Nodes of a network measurement, their endpoints, and one visit of a pair."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from torch._C._distributed_c10d import PrefixStore

from smoke_training.evidence.links import Broken
from smoke_training.fabric import Fabric
from smoke_training.plan import Plan
from smoke_training.probes.group import Group, attempt_store
from smoke_training.probes.network.endpoints import (
    CONNECT_TIMEOUT_S,
    MESSAGES,
    Endpoint,
    GlooEndpoint,
    NcclEndpoint,
    has_endpoint,
)
from smoke_training.probes.stopwatch import complete, difference
from smoke_training.runtime import counters, host
from smoke_training.statistics.links import Pair

COUNTED = ("segments", "retransmitted", "spurious", "sent_bytes", "received_bytes")

Schedule = Sequence[Sequence[Pair]]
"""Rounds of (sender, receiver); no node is in two pairs of a round."""


@dataclass(frozen=True, kw_only=True)
class Half:
    """One end of one transfer; unknown values are None.

    `starved` is the share of the transfer in which the most starved thread waited for a CPU, `counted` the
    counts of the adapters of this end's node meanwhile, by series of `Cell` (all of `COUNTED`).
    """

    pair: Pair  # sender, receiver
    lane: int  # local rank
    sending: bool
    gbit_s: float | None  # measured by the receiver
    starved: float | None
    counted: Mapping[str, int | None]


@dataclass(frozen=True, kw_only=True)
class Arena:
    """The process group, the nodes, and this rank's endpoint (None: not taking part)."""

    group: Group
    nodes: tuple[int, ...]
    endpoint: Endpoint | None
    interface: str | None
    sockets: bool = True  # the kernel's TCP carries the transfers, so its counters are evidence

    @property
    def streams(self) -> int:
        """Concurrent transfers per direction of a pair."""
        return max(1, self.group.world // max(1, len(self.nodes))) if self.group.cuda else 1

    def exchange(self, schedule: Schedule, size: Callable[[Pair], int]) -> tuple[list[Half], list[Broken]]:
        """Return both halves of every visit of a schedule and failed transfers, the same on all ranks.

        `size` gives the bytes of a message between two nodes.
        """
        every = self.group.gather(self._visits(self.endpoint, schedule, size) if self.endpoint else ([], []))
        return [half for theirs, _ in every for half in theirs], [item for _, left in every for item in left]

    def _visits(
        self, endpoint: Endpoint, schedule: Schedule, size: Callable[[Pair], int]
    ) -> tuple[list[Half], list[Broken]]:
        node, halves = self.group.node, list[Half]()
        pair: Pair | None = None
        try:
            for pairs in schedule:
                pair = next((pair for pair in pairs if node in pair), None)
                self.group.beat()
                endpoint.meet()
                if pair:
                    halves.append(self._visit(endpoint, pair, size(pair)))
                else:
                    endpoint.meet()
        except RuntimeError as error:
            sender, receiver = (None if end == node else end for end in pair or (None, None))
            message = first_line(error)
            return halves, [Broken(node=node, sender=sender, receiver=receiver, message=message)]
        return halves, []

    def _visit(self, endpoint: Endpoint, pair: Pair, size: int) -> Half:
        """Transfer, and read the counters before and after."""
        sends = pair[0] == self.group.node
        peer = self.nodes.index(pair[1] if sends else pair[0])
        before, waits, began = self._counted(), host.waits_for_cpus(), time.perf_counter()
        seconds = endpoint.transfer(peer, size, sends=sends)
        elapsed, waited = time.perf_counter() - began, host.longest_wait(waits, host.waits_for_cpus())
        endpoint.meet()  # a sender is done before its data has left: now the counters are complete
        return Half(
            pair=pair,
            lane=self.group.local_rank,
            sending=sends,
            gbit_s=MESSAGES * size * 8 / seconds / 1e9 if seconds else None,
            starved=None if waited is None else waited / elapsed,
            counted={name: difference(before[name], now) for name, now in self._counted().items()},
        )

    def _counted(self) -> dict[str, int | None]:
        """Return this node's counters of transfers; None where the kernel does not count."""
        found = dict[str, int | None].fromkeys(COUNTED)
        if not self.sockets:
            ports = counters.ports().values()
            found["segments"] = _total(port.tx_packets for port in ports)
            found["retransmitted"] = _total(port.retransmitted for port in ports)
            return found
        if tcp := counters.tcp():
            found |= {"segments": tcp.sent, "retransmitted": tcp.retransmitted, "spurious": tcp.spurious}
        if self.interface and (moved := counters.bytes_of(self.interface)):
            found["received_bytes"], found["sent_bytes"] = moved
        return found


def nothing_between(group: Group, plan: Plan) -> str | None:
    """Return the reason why there is no network between nodes to measure, or None."""
    if plan.nodes < 2:
        return "all ranks run on one node"
    if host.is_loopback(host.resolve(os.environ.get("MASTER_ADDR", "")) or ""):
        return "all nodes are on this machine, joined by its loopback interface"
    return None if group.world > 1 else "there is one rank"


def over_sockets(group: Group, plan: Plan) -> bool:
    """Report whether transfers use the kernel's TCP; NCCL's only do without RDMA adapters."""
    mine = not group.cuda or (plan.fabric is Fabric.TCP and not counters.ports())
    return all(group.gather(mine))


def open_arena(
    group: Group, name: str, interface: str | None, *, sockets: bool = True
) -> tuple[Arena | None, list[str]]:
    """Endpoints for all nodes, or None with every node's reason; the same on all ranks."""
    places = group.gather((group.node, group.local_rank))
    nodes = tuple(sorted({node for node, _ in places}))
    endpoint: Endpoint | None = None
    error = None
    try:
        if group.cuda:
            endpoint = NcclEndpoint(group, [places.index((node, group.local_rank)) for node in nodes])
        elif has_endpoint(group):
            store = PrefixStore(f"wire-{name}", attempt_store(CONNECT_TIMEOUT_S))
            endpoint = GlooEndpoint(store, nodes.index(group.node), len(nodes), interface)
    except (RuntimeError, ValueError) as problem:
        error = f"node {group.node}: {first_line(problem)}"
    errors = sorted({item for item in group.gather(error) if item is not None})
    if errors:
        return None, errors
    found = Arena(group=group, nodes=nodes, endpoint=endpoint, interface=interface, sockets=sockets)
    return found, []


def first_line(error: Exception) -> str:
    """Return the first line of an error, at most 300 characters."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _total(values: Iterable[int | None]) -> int | None:
    known = complete(list(values))
    return sum(known) if known else None
