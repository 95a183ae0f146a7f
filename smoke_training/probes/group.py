"""The gang a probe runs in, and the exchanges it uses outside timed regions."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from smoke_training.runtime import heartbeat


@dataclass(frozen=True)
class Gang:
    """One rank's view: its number, the world size, its device and the backend that joins the ranks.

    Every exchange of the whole gang counts in the rank's heartbeat (`enter`) before it begins: the watchdog
    outside compares these counts. An exchange of some ranks only, and work without any, calls `beat`.
    """

    rank: int
    world: int
    local_rank: int
    node: int
    device: torch.device
    backend: str

    def beat(self) -> None:
        """A sign of life: call it at least every few seconds of work without an exchange of all ranks."""
        heartbeat.own().beat()

    @property
    def cuda(self) -> bool:
        """Whether the ranks compute on CUDA devices (that path is untested on hardware)."""
        return self.device.type == "cuda"

    def sync(self) -> None:
        """Wait until the device has finished what was queued; a no-op on CPU."""
        if self.cuda:
            torch.cuda.synchronize(self.device)

    def barrier(self) -> None:
        """Let all ranks reach this point."""
        heartbeat.own().enter()
        dist.barrier()

    def gather(self, item: object) -> list[object]:
        """One picklable item of every rank, in rank order, on every rank."""
        heartbeat.own().enter()
        items: list[object] = [None] * self.world
        dist.all_gather_object(items, item)
        return items

    def maxima(self, seconds: list[float]) -> list[float]:
        """Element-wise maximum over ranks."""
        heartbeat.own().enter()
        values = torch.tensor(seconds, dtype=torch.float64, device=self.device)
        dist.all_reduce(values, op=dist.ReduceOp.MAX)
        return [float(value) for value in values.tolist()]

    def rows(self, values: list[float]) -> list[list[float]]:
        """The same-length list of every rank, in rank order."""
        heartbeat.own().enter()
        mine = torch.tensor(values, dtype=torch.float64, device=self.device)
        found = [torch.empty_like(mine) for _ in range(self.world)]
        dist.all_gather(found, mine)
        return [[float(value) for value in row.tolist()] for row in found]


def join(timeout_s: float, device: str, before: Callable[[Store], None] | None = None) -> Gang:
    """Join the process group that torchrun's environment describes: gloo on "cpu", nccl on "cuda".

    `before` is called with the store of this incarnation before anything else goes through it.
    Every incarnation meets under a prefix of its own. torchrun's static rendezvous keeps one store for all
    restarts, and torch's own `env://` meeting adds no prefix (torch 2.13,
    `torch/distributed/rendezvous.py`), so a restarted rank may read a dead peer's address there and wait
    for it until it times out.
    """
    local_rank = int(os.environ["LOCAL_RANK"])
    backend = "nccl" if device == "cuda" else "gloo"
    where = torch.device("cuda", local_rank) if device == "cuda" else torch.device("cpu")
    if device == "cuda":
        torch.cuda.set_device(where)
    else:
        torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    timeout = timedelta(seconds=timeout_s)
    heartbeat.own().enter()
    meeting = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    store = TCPStore(*meeting, world_size=None, is_master=False, timeout=timeout)
    incarnation = PrefixStore(f"incarnation-{os.environ['TORCHELASTIC_RESTART_COUNT']}", store)
    if before is not None:
        before(incarnation)
    dist.init_process_group(backend, timeout=timeout, store=incarnation, rank=rank, world_size=world)
    return Gang(
        rank=rank,
        world=world,
        local_rank=local_rank,
        node=int(os.environ["GROUP_RANK"]),
        device=where,
        backend=backend,
    )


def leave() -> None:
    """Leave the gang and end the process at once.

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
