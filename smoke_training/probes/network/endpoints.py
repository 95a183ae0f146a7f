"""Transfers between single nodes, outside the run's process group, so that a failure stays here.

Every node takes part with an *endpoint*, named by its index among them. On gloo that is the node's first
rank, in a separate process group that may be bound to one network interface. On nccl every rank is an
endpoint of its rail, and transfers use the run's process group.
"""

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import ProcessGroupGloo, Store

from smoke_training.probes.group import Group

MESSAGES = 6  # of a transfer
OPERATION_TIMEOUT_S = 20.0
CONNECT_TIMEOUT_S = 6.0


class GlooEndpoint:
    """A gloo group of one rank per node, on one interface if named; RuntimeError if it cannot connect."""

    def __init__(self, store: Store, place: int, count: int, interface: str | None) -> None:
        gloo: Any = ProcessGroupGloo  # torch's type stubs lack the inherited methods
        options = gloo._Options()
        options._timeout = timedelta(seconds=CONNECT_TIMEOUT_S)
        options._devices = [
            gloo.create_device(interface=interface) if interface else gloo.create_default_device()
        ]
        self._group = gloo(store, place, count, options)
        self._timeout = timedelta(seconds=OPERATION_TIMEOUT_S)
        self._group._set_default_timeout(self._timeout)  # connected: from here on a starved link may be slow
        self._buffer = torch.empty(0)

    def meet(self) -> None:
        """Wait for all endpoints."""
        self._group.barrier().wait(self._timeout)

    def all_reduce(self, buffer: Tensor) -> None:
        """Sum a buffer over all endpoints, blocking."""
        self._group.allreduce([buffer]).wait(self._timeout)

    def transfer(self, peer: int, size: int, *, sends: bool) -> float | None:
        """Send `MESSAGES` of `size` bytes to a peer, or receive them from it, and wait until it is done.

        Return seconds from when this endpoint was ready until the last message arrived; None for the sender.
        Delays of either end are included, so the rate is never above the link's. Messages have separate tags,
        so that none overtakes another.
        """
        if self._buffer.numel() != size:
            self._buffer = torch.ones(size, dtype=torch.uint8)
        start = self._group.send if sends else self._group.recv
        began = time.perf_counter()
        for work in [start([self._buffer], peer, tag) for tag in range(MESSAGES)]:
            work.wait(self._timeout)
        return None if sends else time.perf_counter() - began


class NcclEndpoint:
    """Transfers among the ranks of one local rank index, in the run's own group.

    `batch_isend_irecv` uses its communicator; plain `send` would make one per pair.
    """

    def __init__(self, group: Group, peers: Sequence[int]) -> None:
        self._group, self._peers = group, tuple(peers)
        self._buffer = torch.empty(0)

    def meet(self) -> None:
        """Wait for all ranks: transfers of all rails run side by side."""
        self._group.barrier()

    def transfer(self, peer: int, size: int, *, sends: bool) -> float | None:
        """See `GlooEndpoint`; timed on the stream of the transfers."""
        if self._buffer.numel() != size:
            self._buffer = torch.ones(size, dtype=torch.uint8, device=self._group.device)
        message = dist.P2POp(dist.isend if sends else dist.irecv, self._buffer, self._peers[peer])

        def exchange() -> None:
            for _ in range(MESSAGES):
                for work in dist.batch_isend_irecv([message]):
                    work.wait()

        seconds = self._group.seconds(exchange)
        return None if sends else seconds


Endpoint = GlooEndpoint | NcclEndpoint


def has_endpoint(group: Group) -> bool:
    """Report whether this rank takes part: on accelerators every rank, else each node's first."""
    return group.cuda or group.local_rank == 0
