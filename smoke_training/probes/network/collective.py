"""Sweeps of the four collectives, and exact rank-coded contents through each of them.

Sizes are visited in rounds, shuffled for each and in the same order on all ranks, against drift; garbage
collection is off while timing. A time is the maximum over ranks. Where the time of the judged size leaves its
verdict open, more rounds are added to the sample, up to a cap.
"""

import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from smoke_training.evidence import Record
from smoke_training.evidence.fabric import Collective, Payload
from smoke_training.expected import lookup, tables
from smoke_training.formulae.bandwidth import ALL_REDUCE, COLLECTIVES
from smoke_training.nccl import tuning as nccl_tuning
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.network import payloads
from smoke_training.probes.network.operations import Bench
from smoke_training.probes.stopwatch import complete, difference, without_collection
from smoke_training.runtime import host
from smoke_training.statistics import medians

REPEATS = medians.LOOK_EVERY  # in a row, of one size, so that caches and connections are warm
ROUNDS = medians.FIRST_LOOK // REPEATS
KIB, MIB = 1 << 10, 1 << 20


def budget(context: ProbeContext, name: str) -> tuple[float, float]:
    """Return the limits in seconds of one call and of all added rounds; training waits for all-reduces."""
    main = name == ALL_REDUCE
    if context.group.cuda:
        return 0.5, 20.0 if main else 8.0
    if context.full:
        return (0.5, 10.0) if main else (0.15, 3.0)
    return (0.2, 3.0) if main else (0.06, 1.0)


def wanted_sizes(context: ProbeContext, name: str) -> tuple[int, ...]:
    """Return sizes in bytes to try, ascending: powers of four; on accelerators every size with a figure.

    On an accelerator none needs more than half of the smallest free memory of all ranks.
    """
    group, plan = context.group, context.plan
    if not group.cuda:
        if name != ALL_REDUCE:
            sizes = (64 * KIB, MIB, 4 * MIB)
            return (*sizes, 16 * MIB) if context.full else sizes
        largest = 26 if context.full else 24
        return tuple(1 << power for power in range(10, largest + 1, 2))
    free, _ = torch.cuda.mem_get_info(group.device)
    most = min(group.gather(free)) / 4
    sizes_known = lookup.sizes_of(tables.shipped(), plan.instance_type, plan.fabric, name)
    first = 10 if name == ALL_REDUCE else 16
    ladder = {*(1 << power for power in range(first, 35, 2)), *sizes_known}
    if plan.expected_busbw_gb_s is not None and name == ALL_REDUCE:
        ladder.add(plan.expected_busbw_gb_s.size_bytes)
    return tuple(sorted(size for size in ladder if size <= most))


def measure(context: ProbeContext) -> Iterator[Record]:
    """`collective` and `payload` evidence of every collective."""
    group = context.group
    for name in COLLECTIVES:
        if group.world > 1:
            found = Sweep(context, name).measure()
            yield found
            skipped = found.skipped and Payload(name=name, skipped=found.skipped)
            yield skipped or payloads.check(group, name, found.sizes)
        elif name == ALL_REDUCE:
            yield payloads.check(group, name, wanted_sizes(context, name))


class Sweep:
    """One collective over its sizes."""

    def __init__(self, context: ProbeContext, name: str) -> None:
        self.context, self.group, self.name = context, context.group, name
        self.nodes = self.group.nodes()
        self.longest_call_s, self.more_s = budget(context, name)
        self.dice = random.Random(f"{context.plan.seed} {name}")  # noqa: S311 - a reproducible order
        self.seconds: dict[int, list[float]] = {}
        self.algorithms: dict[str, str] = {}
        self.cut: str | None = None
        self.window, self.waited = 0.0, list[float | None]()

    def measure(self) -> Collective:
        """Measure everything."""
        wanted = wanted_sizes(self.context, self.name)
        bench = Bench(self.group, self.name, wanted[-1])
        skipped = [why for why in self.group.gather(bench.missing(wanted[0])) if why is not None]
        if skipped:
            return Collective(name=self.name, skipped=skipped[0])
        ticks = host.cpu_ticks()
        with without_collection():
            sizes = self._scouted(bench, wanted)
            for _ in range(ROUNDS):
                self._round(bench, sizes)
            # Rank 0's log is used by all: the ranks must decide by the same evidence.
            self.algorithms = self.group.gather(_algorithms(self.group, self.name))[0]
            self._more(bench)
        stolen = self.group.maximum(host.share("steal", ticks, host.cpu_ticks()))
        dtype = str(bench.dtype).removeprefix("torch.")
        return replace(self._found(), steal_share=stolen, dtype=dtype, launches=not self.group.cuda)

    def _scouted(self, bench: Bench, wanted: Sequence[int]) -> list[int]:
        """Return the sizes within the budget: each is called once, up to the first one that is too slow."""
        limit, times = self.longest_call_s, list[float]()
        for size in wanted:
            slow = len(times) > 1 and times[-1] > 4 * times[0]
            foreseen = times[-1] * size / wanted[len(times) - 1] if slow else 0.0
            if foreseen <= 1.5 * limit:
                # The first call of a size also creates connections and buffers.
                first_two = [self.group.seconds(bench.operation(size), launched=True) for _ in range(2)]
                times.append(min(self.group.maxima(first_two)))
            if foreseen > 1.5 * limit or times[-1] > limit:
                self.cut = f"a call of {size} bytes takes more than the {limit} s it may take"
                break
        kept = [size for size, seconds in zip(wanted, times, strict=False) if seconds <= limit]
        # The alpha-beta fit needs two sizes, however slow the wire is.
        return kept if len(kept) > 1 else list(wanted[:2])

    def _round(self, bench: Bench, sizes: Sequence[int]) -> None:
        order = list(sizes)
        self.dice.shuffle(order)
        for size in order:
            before, began = _waited(), time.perf_counter()
            mine = []
            for _ in range(REPEATS):
                self.group.barrier()
                mine.append(self.group.seconds(bench.operation(size), launched=True))
            self.window += time.perf_counter() - began
            self.waited.append(difference(before, _waited()))
            self.seconds.setdefault(size, []).extend(self.group.maxima(mine))

    def _more(self, bench: Bench) -> None:
        """Run further rounds of the judged size while its verdict is open."""
        began = time.monotonic()
        while True:
            found = self._found()
            size = self.context.sampling.collective(found, self.nodes, self.group.backend)
            if size is None or len(self.seconds[size]) >= medians.CAP:
                return
            spent = self.group.maxima([time.monotonic() - began])[0]  # one clock for all: all stop together
            if spent > self.more_s:
                return
            self._round(bench, [size])

    def _found(self) -> Collective:
        sizes = sorted(self.seconds)
        waited = complete(self.waited)
        return Collective(
            name=self.name,
            sizes=tuple(sizes),
            seconds=tuple(tuple(self.seconds[size]) for size in sizes),
            algorithms=self.algorithms,
            queue_share=self.group.maximum(sum(waited) / self.window if waited else None),
            cut=self.cut,
        )


def _waited() -> float | None:
    """Return the seconds that all threads of this process waited for a CPU; gloo has its own threads."""
    waits = host.waits_for_cpus()
    return sum(waits.values()) if waits else None


def _algorithms(group: Group, name: str) -> dict[str, str]:
    """Return the choices in NCCL's log, where the launcher requested one."""
    pattern = os.environ.get("NCCL_DEBUG_FILE")
    if not group.cuda or not pattern:
        return {}
    path = Path(pattern.replace("%h", "*").replace("%p", str(os.getpid())))
    texts = [found.read_text(errors="replace") for found in path.parent.glob(path.name)]
    chosen = nccl_tuning.parse("\n".join(texts), name)
    return {str(size): choice for (collective, size), choice in chosen.items() if collective == name}
