"""Probe which nodes respond over an interface, by its state and plain connections that cannot hang.

A connection needs small packets only. Where frames of full size are dropped, as after a wrong MTU, the first
data would hang; so each connection carries some, and the kernel reports whether they arrived.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from torch._C._distributed_c10d import PrefixStore, Store

from smoke_training.evidence.links import Rail, RailEnd
from smoke_training.plan import Plan
from smoke_training.reader import decode
from smoke_training.runtime import counters, heartbeat, host

REACH_S = 2.0  # connections on a working rail take milliseconds
SEEN = ("up", "running", "carrier", "operstate", "speed_mbit_s", "carrier_changes", "address")
TRIES = 2  # within one, the kernel repeats a lost packet only once
FULL_FRAMES = 32 << 10  # bytes: three jumbo frames, less than any send buffer or first window holds
SIOCOUTQ = 0x5411  # linux/sockios.h: bytes of a TCP socket that were not acknowledged yet

Exchange = Callable[[Any], list[Any]]  # all-gathers JSON values
Places = Mapping[int, tuple[str | None, int | None]]  # node -> address and port


class StoreExchange:
    """The exchange of one rank per node through a store, before there is a process group."""

    def __init__(self, store: Store, node: int, nodes: int) -> None:
        self._store, self._node, self._nodes, self._round = store, node, nodes, 0

    def __call__(self, item: Any) -> list[Any]:
        """Return every node's item, in the order of nodes."""
        self._round += 1
        heartbeat.own().beat()
        self._store.set(f"{self._round}-{self._node}", json.dumps(item))
        return [json.loads(self._store.get(f"{self._round}-{node}")) for node in range(self._nodes)]


def over_first_rail(store: Store, plan: Plan) -> Rail | None:
    """Return the first rail, which gloo uses, if it is incomplete; the same on every rank, else None.

    None, too, where no rail is planned or all nodes are on one machine.
    """
    if not plan.rails or plan.nodes < 2 or host.is_loopback(host.resolve(os.environ["MASTER_ADDR"]) or ""):
        return None
    name, node = plan.rails[0], int(os.environ["GROUP_RANK"])
    meeting = PrefixStore("first-rail", store)
    if os.environ["LOCAL_RANK"] == "0":
        found = ends(StoreExchange(meeting, node, plan.nodes), name, node, range(plan.nodes))
        meeting.set(f"ends-{node}", json.dumps([dataclasses.asdict(item) for item in found]))
    found = decode(tuple[RailEnd], json.loads(meeting.get(f"ends-{node}")))  # all ranks of a node learn it
    return None if complete(found) else silent(name, found)


def complete(found: Iterable[RailEnd]) -> bool:
    """Report whether every node reaches every other."""
    return all(all(end.reached.values()) for end in found)


def silent(name: str, found: tuple[RailEnd, ...]) -> Rail:
    """A rail that cannot carry an all-reduce."""
    reason = "not every node reaches every other over it"
    return Rail(name=name, ends=found, size_bytes=None, seconds=(), error=reason)


def ends(exchange: Exchange, name: str, node: int | None, nodes: Sequence[int]) -> tuple[RailEnd, ...]:
    """Return state and reach of every node's interface, on every rank of the exchange.

    One rank of each node (`node`; None: not this rank) listens on its interface while all connect.
    """
    state = counters.interfaces().get(name) if node is not None else None
    own = state.address if state else None
    listener = None
    with contextlib.suppress(OSError):  # the kernel alone accepts connections
        listener = socket.create_server((own, 0), backlog=1024) if own else None
    port = listener.getsockname()[1] if listener else None
    offers = exchange(None if node is None else [node, own, port])
    places = {item[0]: (item[1], item[2]) for item in offers if item is not None}
    few = set() if node is None else _few(node, nodes)
    reached = {} if node is None else {str(peer): peer not in few for peer in nodes if peer != node}
    found: tuple[RailEnd, ...] = ()
    try:
        for _ in range(TRIES):
            requested = [peer for peer in nodes if reached.get(str(peer)) is False]
            answers = dict(zip(requested, _reach(own, places, requested), strict=True))
            reached |= {str(peer): answer == "reached" for peer, answer in answers.items()}
            short = tuple(peer for peer, answer in answers.items() if answer == "short")
            mine = None if node is None else dataclasses.asdict(end(node, state, reached, short))
            known = [decode(RailEnd, item) for item in exchange(mine) if item is not None]  # all have tried
            found = tuple(sorted(known, key=lambda item: item.node))
            if complete(found):
                break
    finally:
        if listener is not None:
            listener.close()
    return found


def end(
    node: int,
    state: counters.NetworkInterface | None,
    reached: Mapping[str, bool],
    short: tuple[int, ...] = (),
) -> RailEnd:
    """Return one node's end of a rail, before anything was sent over it."""
    seen = {name: getattr(state, name, None) for name in SEEN}
    return RailEnd(
        node=node,
        exists=state is not None,
        reached=dict(reached),
        tx_bytes=None,
        rx_bytes=None,
        short=short,
        **seen,
    )


def _few(node: int, nodes: Sequence[int]) -> set[int]:
    """Return the nodes to probe: all; above 16 those at distances 1, 2, 4, ..., to find silent ones."""
    if len(nodes) <= 16:
        return set(nodes)
    place = nodes.index(node)
    return {nodes[(place + (1 << step)) % len(nodes)] for step in range(len(nodes).bit_length() - 1)}


def _reach(own: str | None, places: Places, requested: Sequence[int]) -> list[str]:
    """Return the responses of these nodes over the rail; in parallel, at most twice REACH_S.

    `reached`, `short` (only small packets arrive) or `silent`.
    """

    def answer(peer: int) -> str:
        address, port = places.get(peer, (None, None))
        if own is None or address is None or port is None:
            return "silent"
        try:
            with socket.create_connection((address, port), REACH_S, source_address=(own, 0)) as connection:
                return "reached" if _full_frames_arrive(connection) else "short"
        except OSError:
            return "silent"

    heartbeat.own().beat()
    with ThreadPoolExecutor(max(1, len(requested))) as callers:
        return list(callers.map(answer, requested))


def _full_frames_arrive(connection: socket.socket) -> bool:
    """Report whether the peer's kernel acknowledges frames of full size; no reader is needed."""
    connection.sendall(bytes(FULL_FRAMES))
    deadline = time.monotonic() + REACH_S
    while (waiting := struct.unpack("i", fcntl.ioctl(connection, SIOCOUTQ, bytes(4)))[0]) > 0:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return bool(waiting == 0)
