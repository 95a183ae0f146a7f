"""Run the four collectives by name and size."""

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor

from smoke_training.formulae.bandwidth import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER
from smoke_training.probes.group import Group

UNSUPPORTED = ("not support", "not implemented", "no backend", "unsupported")
# Received and given tensors; an all-reduce sums in place, so that both are one tensor. torch 2.13
# renames two of the calls and warns of their old names.
CALLS: dict[str, Callable[[Tensor, Tensor], object]] = {
    ALL_REDUCE: lambda _got, given: dist.all_reduce(given),
    ALL_GATHER: getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor,
    REDUCE_SCATTER: getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor,
    ALL_TO_ALL: dist.all_to_all_single,
}


def lengths(name: str, part: int, ranks: int) -> tuple[int, int]:
    """Return the elements that a rank receives and gives, with `part` elements for each rank."""
    whole = part * ranks
    return part if name == REDUCE_SCATTER else whole, part if name == ALL_GATHER else whole


class Bench:
    """Buffers for one collective up to a largest size in bytes, and its operation at any smaller one.

    A size counts the whole array, rounded down to a multiple of the ranks: bfloat16 on accelerators, as
    gradients are, float32 over gloo. Contents are random, because zeros need less power and hide errors.
    """

    def __init__(self, group: Group, name: str, largest: int) -> None:
        self.group, self.name = group, name
        self.dtype = torch.bfloat16 if group.cuda else torch.float32
        got, given = self._lengths(largest)
        self._given = torch.empty(given, dtype=self.dtype, device=group.device).uniform_(-1, 1)
        self._got = self._given
        if name != ALL_REDUCE:
            self._got = torch.zeros(got, dtype=self.dtype, device=group.device)

    def operation(self, size: int) -> Callable[[], object]:
        """Return the collective over `size` bytes; sums in place are scaled back first, or they overflow."""
        got, given = self._lengths(size)
        if self.name == ALL_REDUCE:
            self._given[:given].mul_(1 / self.group.world)
        return partial(CALLS[self.name], self._got[:got], self._given[:given])

    def missing(self, size: int) -> str | None:
        """Return why the backend cannot run the collective, None if it can; runs it once.

        Only an error about a missing operation counts; any other is raised.
        """
        try:
            self.operation(size)()
        except (RuntimeError, NotImplementedError) as error:
            if any(word in str(error).lower() for word in UNSUPPORTED):
                return f"{self.group.backend} of torch {torch.__version__} has no {self.name}: {error}"[:300]
            raise
        return None

    def _lengths(self, size: int) -> tuple[int, int]:
        return lengths(self.name, max(1, size // self.dtype.itemsize // self.group.world), self.group.world)
