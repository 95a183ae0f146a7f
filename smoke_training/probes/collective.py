"""All-reduce sweep: seconds per size, and exact rank-coded sums at every size."""

import gc
import random

import torch
import torch.distributed as dist

from smoke_training import payload
from smoke_training.probes.gang import Gang, timed_all_reduce

CPU_SIZES = tuple(1 << power for power in range(10, 25, 2))  # 1 KiB .. 16 MiB
GPU_SIZES = tuple(1 << power for power in range(10, 34, 2))  # 1 KiB .. 8 GiB, cut to what fits
REPETITIONS = 15
WARMUP = 3
PAYLOAD_LIMIT = 1 << 22  # 4 MiB: the exact check is about correctness; the sweep is about speed


def sizes(gang: Gang) -> tuple[int, ...]:
    """Payload sizes in bytes; on a GPU none above an eighth of the smallest free memory of all ranks."""
    if not gang.cuda:
        return CPU_SIZES
    free, _ = torch.cuda.mem_get_info(gang.device)
    smallest = -gang.maxima([-float(free)])[0]
    return tuple(size for size in GPU_SIZES if size <= smallest / 8)


def sweep(gang: Gang, seed: int) -> dict[str, object]:
    """The `collective` evidence: per size the repetitions' maximum over ranks, and wrong exact sums.

    Sizes are visited in an order shuffled alike on all ranks, against drift; garbage collection is off
    while timing.
    """
    chosen = sizes(gang)
    order = list(chosen)
    random.Random(seed).shuffle(order)  # noqa: S311 - a reproducible order, not a secret
    seconds: dict[int, list[float]] = {}
    for size in order:
        buffer = torch.ones(size // 4, dtype=torch.float32, device=gang.device)
        mine = []
        gc.disable()
        for _ in range(WARMUP + REPETITIONS):
            gang.barrier()
            mine.append(timed_all_reduce(gang, buffer))
            buffer.fill_(1.0)
        gc.enable()
        seconds[size] = gang.maxima(mine[WARMUP:])
    wrong, accused, elements = {}, {}, 0
    for size in chosen:
        count = min(size, PAYLOAD_LIMIT) // 8
        bad, ranks = exact_sums(gang, count)
        elements += count
        wrong[str(size)] = bad
        accused[str(size)] = ranks
    return {
        "kind": "collective",
        "sizes": list(chosen),
        "seconds": [seconds[size] for size in chosen],
        "payload_elements": elements,
        "payload_wrong": wrong,
        "payload_suspects": accused,
    }


def exact_sums(gang: Gang, count: int) -> tuple[int, list[int]]:
    """All-reduce `count` rank-coded int64 and return (wrong elements over all ranks, accused ranks)."""
    wrong, accused = 0, set[int]()
    for window in payload.windows(gang.world):
        code = payload.contribution(gang.rank, window)
        buffer = torch.full((count,), code, dtype=torch.int64, device=gang.device)
        dist.all_reduce(buffer)
        bad = buffer[buffer != payload.expected_sum(window)]
        wrong += int(bad.numel())
        accused.update(payload.suspects([int(v) for v in bad[:1000].tolist()], window))
    found = gang.gather((wrong, sorted(accused)))
    pairs = [item for item in found if isinstance(item, tuple)]
    return sum(pair[0] for pair in pairs), sorted({rank for pair in pairs for rank in pair[1]})
