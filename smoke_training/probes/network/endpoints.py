"""Transfers between single nodes, apart from the run's process group, so that what breaks, breaks only here.

Every node takes part with an *endpoint*. On gloo that is the node's first rank, in a process group of its own
that may be bound to one network interface. On nccl every rank is an endpoint of its rail, and transfers use
the run's process group (untested on hardware).
"""

import os
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, ProcessGroupGloo, Store, TCPStore

from smoke_training.probes.group import Group

OPERATION_TIMEOUT_S = 20.0
CONNECT_TIMEOUT_S = 6.0


class Endpoint(Protocol):
    """What a schedule of transfers needs; nodes are named by their place among the endpoints."""

    def meet(self) -> None:
        """Wait for all endpoints."""

    def transfer(self, to: int | None, source: int | None, messages: int, size: int) -> float | None:
        """Send to one and receive from one, `messages` of `size` bytes each way, and wait for both.

        Seconds from when this endpoint was ready to receive until the last message was there; None without a
        source. Whatever delays either end is in it, so the rate it gives is never above the link's. (Timing
        from the first arrival would be wrong the other way: a receiver that wakes up late finds the rest
        already in its buffers.)
        """

    def all_reduce(self, buffer: Tensor) -> None:
        """Sum a buffer over all endpoints, blocking."""


def meeting_store(name: str) -> Store:
    """A fresh corner of the rendezvous store, for this restart attempt."""
    timeout = timedelta(seconds=CONNECT_TIMEOUT_S)
    port = int(os.environ["MASTER_PORT"])
    store = TCPStore(os.environ["MASTER_ADDR"], port, world_size=None, is_master=False, timeout=timeout)
    return PrefixStore(f"wire-{name}-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)


class GlooEndpoint:
    """A gloo group of one rank per node, on one interface if named; RuntimeError if it cannot connect."""

    def __init__(self, store: Store, place: int, count: int, interface: str | None) -> None:
        gloo: Any = ProcessGroupGloo  # torch's type stubs leave out what every backend inherits
        options = gloo._Options()
        options._timeout = timedelta(seconds=CONNECT_TIMEOUT_S)
        options._devices = [
            gloo.create_device(interface=interface) if interface else gloo.create_default_device()
        ]
        self._group = gloo(store, place, count, options)
        self._timeout = timedelta(seconds=OPERATION_TIMEOUT_S)
        self._group._set_default_timeout(self._timeout)  # connected: from here on a starved link may be slow
        self._buffers: tuple[Tensor, Tensor] = (torch.empty(0), torch.empty(0))

    def meet(self) -> None:
        """Wait for all endpoints."""
        self._group.barrier().wait(self._timeout)

    def all_reduce(self, buffer: Tensor) -> None:
        """Sum a buffer over all endpoints, blocking."""
        self._group.allreduce([buffer]).wait(self._timeout)

    def transfer(self, to: int | None, source: int | None, messages: int, size: int) -> float | None:
        """See `Endpoint`. Messages have tags of their own, so that none overtakes another."""
        if self._buffers[0].numel() != size:
            self._buffers = (torch.ones(size, dtype=torch.uint8), torch.empty(size, dtype=torch.uint8))
        out, arriving = self._buffers
        tags, group = range(messages), self._group
        ready = time.perf_counter()
        receives = [] if source is None else [group.recv([arriving], source, tag) for tag in tags]
        sends = [] if to is None else [group.send([out], to, tag) for tag in tags]
        for work in receives:
            work.wait(self._timeout)
        arrived = time.perf_counter()
        for work in sends:
            work.wait(self._timeout)
        return None if source is None else arrived - ready


class NcclEndpoint:
    """Transfers among the ranks of one local rank index, in the run's own group (untested on hardware).

    `batch_isend_irecv` uses its communicator; plain `send` would make one per pair.
    """

    def __init__(self, group: Group, peers: Sequence[int], subgroup: dist.ProcessGroup | None = None) -> None:
        self._group, self._peers, self._subgroup = group, tuple(peers), subgroup
        self._buffers: tuple[Tensor, Tensor] = (torch.empty(0), torch.empty(0))

    def meet(self) -> None:
        """Wait for all ranks: transfers of all rails run side by side."""
        self._group.barrier()

    def all_reduce(self, buffer: Tensor) -> None:
        """Sum a buffer over the ranks of this rail, blocking."""
        dist.all_reduce(buffer, group=self._subgroup)
        self._group.sync()

    def transfer(self, to: int | None, source: int | None, messages: int, size: int) -> float | None:
        """See `Endpoint`; timed by CUDA events on the stream that the transfers are ordered with."""
        if to is None and source is None:
            return None
        if self._buffers[0].numel() != size:
            fresh = torch.ones(size, dtype=torch.uint8, device=self._group.device)
            self._buffers = (fresh, torch.empty_like(fresh))
        out, arriving = self._buffers
        first, last = _mark(), _mark()
        first.record()
        for _ in range(messages):
            operations = []
            if to is not None:
                operations.append(dist.P2POp(dist.isend, out, self._peers[to]))
            if source is not None:
                operations.append(dist.P2POp(dist.irecv, arriving, self._peers[source]))
            for work in dist.batch_isend_irecv(operations):
                work.wait()
        last.record()
        self._group.sync()
        return None if source is None else float(first.elapsed_time(last)) / 1e3


def _mark() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def has_endpoint(group: Group) -> bool:
    """Whether this rank takes part: on accelerators every rank, else each node's first."""
    return group.cuda or group.local_rank == 0
