"""Figures of the other ranks, through the key-value store of the process group."""

import itertools
import json
import time
from collections.abc import Callable

import torch.distributed as dist
from torch._C._distributed_c10d import HashStore, PrefixStore, Store
from torch.distributed import distributed_c10d

PATIENCE_S = 2.0  # time that rank 0 waits, in this thread, for the figures of slower ranks
SLOTS = 4  # windows of one rank that the store keeps: its size does not grow with the run
POLL_S = 0.2
_runs = itertools.count()


class Peers:
    """The other ranks of the default process group, or none; figures go through its key-value store.

    Every rank makes its objects in the same order, so that they use the same prefix. Only rank 0
    reads: one reader costs the store as much as all writers together.
    """

    def __init__(self) -> None:
        joined = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if joined else 0
        self.world = dist.get_world_size() if joined else 1
        self._store: Store = HashStore()
        if self.world > 1:
            prefix = f"smoke_training.instrument/{next(_runs)}"
            # torch has no public name for the store of the default group; `torch.distributed.elastic` and
            # `new_group` use this one.
            self._store = PrefixStore(prefix, distributed_c10d._get_default_store())

    def publish(self, window: int, figures: object) -> None:
        """Publish a window of steps to the other ranks; `figures` must be ready for JSON."""
        self.post(str(window % SLOTS), {"window": window, "figures": figures})

    def post(self, word: str, figures: object) -> None:
        """Publish the latest figures of a name, ready for JSON."""
        self._store.set(f"{self.rank}/{word}", json.dumps(figures))

    def posted(self, rank: int, word: str) -> object | None:
        """Return the latest figures of a rank under a name, or None."""
        key = f"{rank}/{word}"
        return json.loads(self._store.get(key)) if self._store.check([key]) else None

    def say(self, word: str) -> None:
        """Publish that this rank has reached an event."""
        self._store.set(f"{self.rank}/{word}", "")

    def silent(self, word: str) -> list[int]:
        """Return the ranks that have not published an event."""
        return [rank for rank in range(self.world) if not self._store.check([f"{rank}/{word}"])]

    def collect(self, window: int, hurried: Callable[[], bool]) -> tuple[list[object], list[int]]:
        """Return the figures of all ranks for a window, and the ranks whose figures are late."""
        deadline = time.monotonic() + PATIENCE_S
        found: dict[int, object] = {}
        while True:
            for rank in set(range(self.world)) - found.keys():
                sent = self.posted(rank, str(window % SLOTS))
                if isinstance(sent, dict) and sent["window"] == window:
                    found[rank] = sent["figures"]
            missing = [rank for rank in range(self.world) if rank not in found]
            if not missing or time.monotonic() > deadline or hurried():
                return [found.get(rank) for rank in range(self.world)], missing
            time.sleep(POLL_S)
