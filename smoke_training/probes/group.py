"""Process group of a probe, and its exchanges outside timed regions."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from smoke_training.evidence.training import Rows
from smoke_training.probes.stopwatch import complete
from smoke_training.runtime import heartbeat

T = TypeVar("T")
ASLEEP = 1_000_000  # cycles, about half a millisecond: longer than the launch of one collective


@dataclass(frozen=True)
class Group:
    """One rank's view of the process group: its number, the world size, its device, the backend.

    Every exchange of all ranks counts in the rank's heartbeat (`enter`) before it begins: the watchdog
    outside compares these counts. An exchange of some ranks only, and work without any, calls `beat`.
    """

    rank: int
    world: int
    local_rank: int
    node: int
    device: torch.device
    backend: str

    def beat(self) -> None:
        """Send a heartbeat: call it at least every few seconds of work without an exchange of all ranks."""
        heartbeat.own().beat()

    @property
    def cuda(self) -> bool:
        """True if the ranks compute on CUDA devices."""
        return self.device.type == "cuda"

    def sync(self) -> None:
        """Wait until the device has finished what was queued; a no-op on CPU."""
        if self.cuda:
            torch.cuda.synchronize(self.device)

    def barrier(self) -> None:
        """Wait until all ranks reach this point."""
        heartbeat.own().enter()
        dist.barrier()

    def gather(self, item: T) -> list[T]:
        """Return one picklable item of every rank, in rank order, on every rank."""
        heartbeat.own().enter()
        items = [item] * self.world
        dist.all_gather_object(items, item)
        return items

    def nodes(self) -> list[int]:
        """The node of every rank, in rank order."""
        return self.gather(self.node)

    def maxima(self, values: Sequence[float]) -> tuple[float, ...]:
        """Element-wise maximum over ranks."""
        return tuple(max(column) for column in zip(*self.gather(values), strict=True))

    def maximum(self, value: float | None) -> float | None:
        """The largest value of any rank; None if no rank has one."""
        return max((item for item in self.gather(value) if item is not None), default=None)

    def rows(self, values: Sequence[float]) -> Rows:
        """The same-length list of every rank, in rank order."""
        return tuple(tuple(row) for row in self.gather(values))

    def known_rows(self, values: Sequence[float | None]) -> Rows | None:
        """The same-length list of every rank; None if any value is unknown."""
        return complete([complete(row) for row in self.gather(values)])

    def seconds(self, work: Callable[[], object], *, launched: bool = False) -> float:
        """Return the seconds of work on this rank's idle device; on CUDA by events.

        These include the launches of the work, unless `launched`: then the device sleeps until all is queued.
        """
        self.sync()
        if not self.cuda:
            began = time.perf_counter()
            work()
            return time.perf_counter() - began
        event: Callable[..., torch.cuda.Event] = torch.cuda.Event
        first, last = event(enable_timing=True), event(enable_timing=True)
        if launched:
            sleep: Callable[[int], None] = torch.cuda._sleep
            sleep(ASLEEP)
        first.record()
        work()
        last.record()
        last.synchronize()
        return float(first.elapsed_time(last)) / 1e3


def attempt_store(timeout_s: float) -> Store:
    """Return the store of this restart attempt's ranks, as torchrun's environment describes it.

    Every attempt has its own prefix. torchrun's static rendezvous keeps one store for all restarts, where a
    restarted rank may read a dead peer's address and wait for it (torch 2.13, `distributed/rendezvous.py`).
    """
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    timeout = timedelta(seconds=timeout_s)
    store = TCPStore(address, port, world_size=None, is_master=False, timeout=timeout)
    return PrefixStore(f"attempt-{os.environ['TORCHELASTIC_RESTART_COUNT']}", store)


def join(timeout_s: float, device: str, before: Callable[[Store], None] | None = None) -> Group:
    """Join the process group that torchrun's environment describes: gloo on "cpu", nccl on "cuda".

    `before` is called with the store of this restart attempt before any other use.
    """
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    world, timeout = int(os.environ["WORLD_SIZE"]), timedelta(seconds=timeout_s)
    if device == "cuda":
        backend, where = "nccl", torch.device("cuda", local_rank)
        torch.cuda.set_device(where)
    else:
        backend, where = "gloo", torch.device("cpu")
        torch.set_num_threads(1)
    heartbeat.own().enter()
    store = attempt_store(timeout_s)
    if before is not None:
        before(store)
    bound = where if device == "cuda" else None
    dist.init_process_group(
        backend, timeout=timeout, store=store, rank=rank, world_size=world, device_id=bound
    )
    return Group(
        rank=rank,
        world=world,
        local_rank=local_rank,
        node=int(os.environ["GROUP_RANK"]),
        device=where,
        backend=backend,
    )


def leave() -> None:
    """Leave the process group and end the process at once.

    Interpreter shutdown would run gloo's destructors while peers may already be gone, which aborts the
    process.
    """
    heartbeat.own().enter()
    dist.barrier()
    heartbeat.own().farewell()
    dist.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def nccl_version() -> str:
    """Version of the NCCL this torch was built with, as `2.28.9` (CUDA builds only)."""
    version: Callable[[], tuple[int, ...]] = torch.cuda.nccl.version
    return ".".join(map(str, version()))


def bus_of(index: int) -> str:
    """PCI address of a CUDA device as the kernel writes it, "0000:3b:00.0"."""
    found: Any = torch.cuda.get_device_properties(index)
    return f"{found.pci_domain_id:04x}:{found.pci_bus_id:02x}:{found.pci_device_id:02x}.0"
