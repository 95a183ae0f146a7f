"""Small figures between ranks through the process group's key-value store: no collective, no barrier."""

import itertools
import json
import time
from collections.abc import Callable

import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, Store
from torch.distributed import distributed_c10d

SLOTS = 4  # windows of one rank that the store keeps: its size does not grow with the run
POLL_S = 0.2
_runs = itertools.count()


class Peers:
    """The other ranks of the default process group; alone without one.

    Every rank makes its objects in the same order, so that they meet under the same prefix. Only rank 0
    reads: one reader costs the store as much as all writers together.
    """

    def __init__(self) -> None:
        joined = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if joined else 0
        self.world = dist.get_world_size() if joined else 1
        self._store: Store | None = None
        if self.world > 1:
            prefix = f"smoke_training.instrument/{next(_runs)}"
            # torch has no public name for the store of the default group; `torch.distributed.elastic` and
            # `new_group` use this one.
            self._store = PrefixStore(prefix, distributed_c10d._get_default_store())

    def publish(self, window: int, figures: object) -> None:
        """Tell the others about a window of steps; `figures` must be ready for JSON."""
        if self._store is not None:
            text = json.dumps({"window": window, "figures": figures})
            self._store.set(f"{self.rank}/{window % SLOTS}", text)

    def collect(
        self, window: int, patience_s: float, hurried: Callable[[], bool]
    ) -> tuple[list[object], list[int]]:
        """Figures of all ranks for a window, and the ranks that have not sent theirs in time."""
        deadline = time.monotonic() + patience_s
        found: dict[int, object] = {}
        while True:
            missing = [rank for rank in range(self.world) if rank not in found]
            for rank in missing:
                sent = self._read(rank, window)
                if sent is not None:
                    found[rank] = sent
            missing = [rank for rank in missing if rank not in found]
            if not missing or time.monotonic() > deadline or hurried():
                return [found.get(rank) for rank in range(self.world)], missing
            time.sleep(POLL_S)

    def _read(self, rank: int, window: int) -> object | None:
        assert self._store is not None
        key = f"{rank}/{window % SLOTS}"
        if not self._store.check([key]):
            return None
        sent = json.loads(self._store.get(key))
        return sent["figures"] if sent["window"] == window else None
