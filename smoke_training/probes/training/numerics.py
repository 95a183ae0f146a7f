"""Gradients: finite on every rank before the reduction, equal on all ranks after it.

The owner of a NaN can only be found before the reduction, which hands it to all ranks. When the last
gradient of a backward pass is ready, autograd runs the callbacks queued during that pass in their order.
`DistributedDataParallel` queues the one that waits for the all-reduce and copies its result over the
gradients when its last bucket is full (torch 2.13, `reducer.cpp`, `finalize_backward`), which it learns after
a parameter's own hooks have run. A callback queued by such a hook therefore runs before it and sees this
rank's own gradients, while the reduction is already under way: checking them costs little time that a step
would not have waited anyway. This needs `gradient_as_bucket_view=False`, the default, and gradients cleared
before every pass.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import torch
from torch import Tensor, nn

from smoke_training.evidence.training import NonFinite, Numerics
from smoke_training.probes.group import Group

FOUND_AT_MOST = 32  # entries: a NaN that reached the weights would fill pages
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass
class Sample:
    """Sums over the bits of every parameter's gradient at one step."""

    step: int
    sums: list[tuple[int, int]] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits over all parameters."""
        return hashlib.blake2b(repr(self.sums).encode(), digest_size=8).hexdigest()


class Watch:
    """Checks every backward pass through a model; use it in a `with` statement around the passes.

    On CUDA the check stays on the device until `settle` (untested on hardware).
    """

    def __init__(self, model: nn.Module, group: Group) -> None:
        self._group = group
        self.passes = 0
        self.found: list[NonFinite] = []
        self.samples: list[Sample] = []
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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

    def checksum(self) -> None:
        """Remember the gradients after the reduction of the last pass; outside timed regions."""
        sample = Sample(self.passes - 1)
        for _, parameter in self._named:
            if parameter.grad is None:
                sample.sums.append((0, 0))
                continue
            bits = parameter.grad.detach().contiguous().view(-1).view(_BITS[parameter.grad.element_size()])
            sums = torch.stack([bits.sum(dtype=torch.int64), bits[::2].sum(dtype=torch.int64)]).tolist()
            sample.sums.append((int(sums[0]), int(sums[1])))
        self.samples.append(sample)

    def evidence(self, phase: str) -> Numerics:
        """The `numerics` evidence of a phase; every rank must call it at the same place."""
        self.settle()
        group = self._group
        found = group.gather(self.found)
        digests = tuple(group.gather(tuple(sample.digest for sample in self.samples)))
        return Numerics(
            phase=phase,
            passes=min(group.gather(self.passes)),
            nonfinite=tuple(item for items in found for item in items),
            steps=tuple(sample.step for sample in self.samples),
            checksums=digests,
            differing=self._differing(digests),
        )

    def _differing(self, digests: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """Parameters whose sums are not the same on all ranks at the first step where any differ."""
        where = first_difference(digests)
        if where is None:
            return ()
        rows = self._group.gather(self.samples[where].sums)
        columns = zip(self._named, zip(*rows, strict=True), strict=True)
        return tuple(name for (name, _), sums in columns if len(set(sums)) > 1)

    def _after_forward(self, *_: object) -> None:
        # A pass that did not come through the model itself (through a wrapped module, say) is not counted.
        self._armed = True

    def _backward_goes_on(self, _parameter: Tensor) -> None:
        if self._armed:
            self._armed = False
            torch.autograd.Variable._execution_engine.queue_callback(self._gradients_ready)

    def _gradients_ready(self) -> None:
        self.passes += 1
        self.check()

    def check(self) -> None:
        """Look at this rank's gradients as they are now, on behalf of the latest pass."""
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


def first_difference(digests: Sequence[Sequence[str]]) -> int | None:
    """Index of the first sample that is not the same on all ranks."""
    columns = list(zip(*digests, strict=True))
    return next((index for index, column in enumerate(columns) if len(set(column)) > 1), None)
