"""Scaling efficiency that a measured all-reduce allows a step of data-parallel training (pure).

Model: the backward pass has twice the operations of the forward pass (Kaplan et al. 2020, arXiv:2001.08361,
section 2.1), gradients become ready in proportion to their bytes, and a bucket's all-reduce begins when the
bucket is complete and the one before it has ended (Li et al. 2020, "PyTorch Distributed", PVLDB 13(12),
section 3.2.3). That both compete for one GPU is left out: a step lies between this and no overlap.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

FORWARD = 1 / 3
BUCKET_BYTES = 25 << 20  # torch.nn.parallel.DistributedDataParallel, bucket_cap_mb
SLOWER = 1 / 0.9  # repetitions of one all-reduce on a healthy fabric differ by a tenth (ADR 14)


@dataclass(frozen=True)
class AllowedEfficiency:
    """`best` with full overlap, `floor` with half of what can overlap, `line` without any overlap."""

    best: float
    floor: float
    line: float


def allowed(
    compute_s: float, buckets: Sequence[int], measured: Sequence[tuple[int, float]]
) -> AllowedEfficiency:
    """Efficiency of a step that computes for `compute_s` and reduces `buckets` (bytes, in their order).

    `measured` are sizes in bytes, ascending, with the seconds of an all-reduce. ValueError without any.
    """
    exchange = [seconds_of(size, measured) for size in buckets]
    alone, total, ready, done = math.fsum(exchange), sum(buckets), 0, 0.0
    for size, seconds in zip(buckets, exchange, strict=True):
        ready += size
        done = max(done, compute_s * (FORWARD + (1 - FORWARD) * ready / total)) + seconds
    middle = (done + compute_s + alone) / 2
    return AllowedEfficiency(compute_s / done, compute_s / middle, compute_s / (compute_s + SLOWER * alone))


def even_buckets(gradient_bytes: int) -> tuple[int, ...]:
    """Buckets of DDP's default size, for records that do not list theirs."""
    whole, rest = divmod(gradient_bytes, BUCKET_BYTES)
    return (BUCKET_BYTES,) * whole + ((rest,) if rest else ())


def bucket_sizes(parameters: Sequence[int]) -> tuple[int, ...]:
    """Return DDP's buckets for gradients of these bytes in the order in which they become ready.

    A bucket is closed once it has reached the limit (torch `csrc/distributed/c10d/reducer.cpp`,
    compute_bucket_assignment_by_size), so that it may be larger by one gradient.
    """
    found = [0]
    for size in parameters:
        if found[-1] >= BUCKET_BYTES:
            found.append(0)
        found[-1] += size
    return tuple(found)


def seconds_of(size: int, measured: Sequence[tuple[int, float]]) -> float:
    """Seconds of an all-reduce of a size: between two measured sizes on the line of their logarithms.

    Below the smallest its time, above the largest its rate.
    """
    if not measured:
        raise ValueError("no all-reduce was measured")
    (low, early), (high, late) = measured[0], measured[-1]
    if size <= low or size >= high:
        return early if size <= low else late * size / high
    at = next(i for i, (other, _) in enumerate(measured) if other >= size)
    (low, early), (high, late) = measured[at - 1], measured[at]
    share = math.log(size / low) / math.log(high / low)
    return float(early * (late / early) ** share)
