"""Gradients: finite and repeatable on every rank before the reduction, equal on all ranks after it.

The owner of a NaN can only be found before the reduction, which distributes it to all ranks. When the last
gradient of a backward pass is ready, autograd runs the callbacks queued during that pass in their order.
`DistributedDataParallel` queues the one that waits for the all-reduce and copies its result over the
gradients when its last bucket is full (torch 2.13, `reducer.cpp`, `finalize_backward`), after a parameter's
own hooks have run. A callback queued by such a hook therefore runs before it and sees this rank's own
gradients. This needs `gradient_as_bucket_view=False`, the default, and gradients cleared before every pass.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Self

import torch
from torch import Tensor, nn

from smoke_training.evidence.training import NonFinite, Numerics, Repeats
from smoke_training.probes.group import Group

FOUND_AT_MOST = 32  # entries: a NaN that reached the weights would fill pages
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class GradientWatch:
    """Checks every backward pass through a model; use it in a `with` statement around the passes.

    On CUDA the check stays on the device until `settle`. With `work` set, it also records the bits of this
    rank's own gradients, which are read at once.
    """

    def __init__(self, model: nn.Module, group: Group) -> None:
        self._group = group
        self.passes = 0
        self.work: int | None = None  # the same number for the same batch and weights; None: not recorded
        self.own: dict[int, tuple[int, str]] = {}  # step -> its work, and a digest of its own gradients
        self.found: list[NonFinite] = []
        self.samples: dict[int, list[tuple[int, int]]] = {}  # step -> sums over the bits of every gradient
        self._named = [
            (name.removeprefix("module."), parameter)
            for name, parameter in model.named_parameters()
            if parameter.requires_grad
        ]
        self._pending: list[tuple[int, list[str], list[Tensor]]] = []
        self._armed = False
        last = self._named[-1][1]
        self._handles = [
            model.register_forward_hook(self._after_forward),
            last.register_post_accumulate_grad_hook(self._backward_goes_on),  # type: ignore[no-untyped-call]
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def settle(self) -> None:
        """Read what the device has found so far (waits for it); outside timed regions."""
        for step, names, maxima in self._pending:
            values = torch.stack([maximum.float() for maximum in maxima]).tolist()
            for name, value in zip(names, values, strict=True):
                if not math.isfinite(value):
                    self._note(step, name, nan=int(math.isnan(value)), infinite=int(math.isinf(value)))
        self._pending.clear()

    @property
    def wrong(self) -> bool:
        """True if a gradient of this rank was not finite, or differed between repetitions of work."""
        mine = repeats(self._group.rank, self.own)
        return bool(self.found) or 0 < 2 * mine.odd < mine.passes

    def checksum(self) -> None:
        """Record checksums of the gradients after the reduction of the last pass; outside timed regions."""
        self.samples[self.passes - 1] = [_sums(parameter.grad) for _, parameter in self._named]

    def evidence(self, phase: str) -> Numerics:
        """The `numerics` evidence of a phase; every rank must call it at the same place."""
        self.settle()
        group = self._group
        found = group.gather(self.found)
        digests = tuple(group.gather(tuple(map(_digest, self.samples.values()))))
        return Numerics(
            phase=phase,
            passes=min(group.gather(self.passes)),
            nonfinite=tuple(item for items in found for item in items),
            steps=tuple(self.samples),
            checksums=digests,
            differing=self._differing(digests),
            repeats=tuple(item for item in group.gather(repeats(group.rank, self.own)) if item.passes),
        )

    def _differing(self, digests: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """Parameters whose sums are not the same on all ranks at the first step where any differ."""
        for sums, column in zip(self.samples.values(), zip(*digests, strict=True), strict=True):
            if len(set(column)) > 1:
                columns = zip(self._named, zip(*self._group.gather(sums), strict=True), strict=True)
                return tuple(name for (name, _), found in columns if len(set(found)) > 1)
        return ()

    def _after_forward(self, *_: object) -> None:
        # A pass that bypassed the model itself (through a wrapped module, say) is not counted.
        self._armed = True

    def _backward_goes_on(self, _parameter: Tensor) -> None:
        if self._armed:
            self._armed = False
            torch.autograd.Variable._execution_engine.queue_callback(self._gradients_ready)

    def _gradients_ready(self) -> None:
        self.passes += 1
        self.check()
        if self.work is not None:
            sums = [_bits(p.grad).sum(dtype=torch.int64) for _, p in self._named if p.grad is not None]
            self.own[self.passes - 1] = self.work, _digest(torch.stack(sums).tolist())

    def check(self) -> None:
        """Check this rank's current gradients, as those of the latest pass."""
        step = max(0, self.passes - 1)
        ready = [(name, p.grad) for name, p in self._named if p.grad is not None]
        if ready and ready[0][1].is_cuda:
            maxima = torch._foreach_norm([gradient for _, gradient in ready], math.inf)
            self._pending.append((step, [name for name, _ in ready], list(maxima)))
            return
        for name, gradient in ready:
            # A sum is not finite as soon as one element is not; one that overflows is settled by counting.
            if not math.isfinite(float(gradient.sum())):
                nan, infinite = int(gradient.isnan().sum()), int(gradient.isinf().sum())
                self._note(step, name, nan=nan, infinite=infinite)

    def _note(self, step: int, parameter: str, *, nan: int, infinite: int) -> None:
        if (nan or infinite) and len(self.found) < FOUND_AT_MOST:
            self.found.append(
                NonFinite(rank=self._group.rank, step=step, parameter=parameter, nan=nan, infinite=infinite)
            )


def _sums(gradient: Tensor | None) -> tuple[int, int]:
    """Sums over the bits of all elements and of every second one; zeros without a gradient."""
    if gradient is None:
        return 0, 0
    bits = _bits(gradient)
    every, second = torch.stack([bits.sum(dtype=torch.int64), bits[::2].sum(dtype=torch.int64)]).tolist()
    return int(every), int(second)


def _bits(gradient: Tensor) -> Tensor:
    """All elements as integers of their width."""
    return gradient.detach().contiguous().view(-1).view(_BITS[gradient.element_size()])


def repeats(rank: int, own: Mapping[int, tuple[int, str]]) -> Repeats:
    """Compare a rank's passes with the most frequent result of the same work; `own` by step (pure)."""
    by_work: dict[int, Counter[str]] = {}
    for work, digest in own.values():
        by_work.setdefault(work, Counter())[digest] += 1
    usual = {work: digests.most_common(1)[0][0] for work, digests in by_work.items()}
    odd = [step for step, (work, digest) in own.items() if digest != usual[work]]
    passes = sum(count for digests in by_work.values() if (count := digests.total()) > 1)
    return Repeats(rank=rank, passes=passes, odd=len(odd), first=min(odd, default=None))


def _digest(sums: Sequence[object]) -> str:
    """Sixteen hexadecimal digits over all parameters."""
    return hashlib.blake2b(repr(sums).encode(), digest_size=8).hexdigest()
