"""The four collectives under one roof, by name and size."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from smoke_training.formulae.bandwidth import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER
from smoke_training.probes.group import Group

UNSUPPORTED = ("not support", "not implemented", "no backend", "unsupported")


def all_reduce(buffer: Tensor) -> None:
    """Sum in place."""
    dist.all_reduce(buffer)


def all_gather(out: Tensor, part: Tensor) -> None:
    """Every rank's part, in rank order. torch 2.13 renames the call and warns of the old name."""
    newer = getattr(dist, "all_gather_single", None)
    (newer or dist.all_gather_into_tensor)(out, part)


def reduce_scatter(part: Tensor, whole: Tensor) -> None:
    """The own part of the sum. torch 2.13 renames the call and warns of the old name."""
    newer = getattr(dist, "reduce_scatter_single", None)
    (newer or dist.reduce_scatter_tensor)(part, whole)


def all_to_all(out: Tensor, sent: Tensor) -> None:
    """Equal parts from every rank to every rank."""
    dist.all_to_all_single(out, sent)


class Bench:
    """Buffers for one collective up to a largest size in bytes, and its operation at any smaller one.

    A size counts the whole array, float32. It is rounded down to a multiple of the ranks.
    """

    def __init__(self, group: Group, name: str, largest: int) -> None:
        self.group, self.name = group, name
        self._whole = torch.zeros(self._count(largest), dtype=torch.float32, device=group.device)
        extra = {ALL_REDUCE: 0, ALL_TO_ALL: self._count(largest)}.get(name, self._part(largest))
        self._other = torch.zeros(extra, dtype=torch.float32, device=group.device)

    def operation(self, size: int) -> Callable[[], None]:
        """The collective over `size` bytes; ValueError for an unknown name."""
        whole = self._whole[: self._count(size)]
        if self.name == ALL_REDUCE:
            return lambda: all_reduce(whole)
        if self.name == ALL_TO_ALL:
            out = self._other[: self._count(size)]
            return lambda: all_to_all(out, whole)
        part = self._other[: self._part(size)]
        if self.name == ALL_GATHER:
            return lambda: all_gather(whole, part)
        if self.name == REDUCE_SCATTER:
            return lambda: reduce_scatter(part, whole)
        raise ValueError(f"no collective {self.name!r}")

    def missing(self, size: int) -> str | None:
        """Why the backend cannot run the collective, None if it can; runs it once.

        Only an error that says so counts: any other is a fault of this run and is raised.
        """
        try:
            self.operation(size)()
        except (RuntimeError, NotImplementedError) as error:
            if any(word in str(error).lower() for word in UNSUPPORTED):
                return f"{self.group.backend} of torch {torch.__version__} has no {self.name}: {error}"[:300]
            raise
        return None

    def _part(self, size: int) -> int:
        return max(1, size // 4 // self.group.world)

    def _count(self, size: int) -> int:
        return self._part(size) * self.group.world
