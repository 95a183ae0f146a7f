"""Sweeps of the four collectives, and exact rank-coded contents through each of them.

Sizes are visited in rounds, in an order shuffled anew for each and alike on all ranks, against drift; garbage
collection is off while timing. A time is the maximum over ranks. Where the time of the judged size leaves its
verdict open, more rounds are added to the sample, up to a cap.
"""

import gc
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from smoke_training.evidence import fabric, parse
from smoke_training.expected import lookup, tables
from smoke_training.expected.reference import setting_of
from smoke_training.formulae.bandwidth import ALL_REDUCE, COLLECTIVES
from smoke_training.judges.network import collectives as judges
from smoke_training.nccl import tuning as nccl_tuning
from smoke_training.probes.context import Context, Line
from smoke_training.probes.group import Gang
from smoke_training.probes.network import payloads
from smoke_training.probes.network.operations import Bench
from smoke_training.runtime import host, threads

REPEATS = judges.LOOK_EVERY  # in a row, of one size, so that caches and connections are as warm as in use
ROUNDS = judges.FIRST_LOOK // REPEATS
KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Budget:
    """How long one call may take, and how long all added rounds may, in seconds."""

    longest_call_s: float
    more_s: float


def budget(context: Context, name: str) -> Budget:
    """All-reduce has the most time: it is what training waits for."""
    main = name == ALL_REDUCE
    if context.gang.cuda:
        return Budget(0.5, 20.0 if main else 8.0)
    if context.full:
        return Budget(0.5 if main else 0.15, 10.0 if main else 3.0)
    return Budget(0.2 if main else 0.06, 3.0 if main else 1.0)


def wanted_sizes(context: Context, name: str) -> tuple[int, ...]:
    """Sizes in bytes to try, ascending: powers of four, and on accelerators every size that has a figure.

    On an accelerator none needs more than half of the smallest free memory of all ranks.
    """
    gang, plan = context.gang, context.plan
    if not gang.cuda:
        if name != ALL_REDUCE:
            sizes = (64 * KIB, MIB, 4 * MIB)
            return (*sizes, 16 * MIB) if context.full else sizes
        largest = 26 if context.full else 24
        return tuple(1 << power for power in range(10, largest + 1, 2))
    free, _ = torch.cuda.mem_get_info(gang.device)
    most = -gang.maxima([-float(free)])[0] / 4
    sizes_known = lookup.sizes_of(tables.shipped(), plan.instance_type, plan.fabric, name)
    first = 10 if name == ALL_REDUCE else 16
    ladder = {*(1 << power for power in range(first, 35, 2)), *sizes_known}
    if plan.expected_busbw is not None and name == ALL_REDUCE:
        ladder.add(plan.expected_busbw.size_bytes)
    return tuple(sorted(size for size in ladder if size <= most))


def measure(context: Context) -> Iterator[Line]:
    """A `collective` and a `payload` line per collective (GPU path untested on hardware)."""
    gang = context.gang
    nodes = gang.gather(gang.node)
    for name in COLLECTIVES:
        if gang.world > 1:
            sweep = Sweep(context, name, [int(str(node)) for node in nodes])
            line = sweep.line()
            yield line
            if line.get("skipped") is not None:
                yield {"kind": "payload", "name": name, "skipped": line["skipped"]}
            else:
                yield payloads.check(gang, name, sorted(sweep.seconds))
        elif name == ALL_REDUCE:
            yield payloads.check(gang, name, wanted_sizes(context, name))


class Sweep:
    """One collective over its sizes."""

    def __init__(self, context: Context, name: str, nodes: Sequence[int]) -> None:
        self.context, self.gang, self.name = context, context.gang, name
        self.budget, self.nodes = budget(context, name), nodes
        self.dice = random.Random(f"{context.plan.seed} {name}")  # noqa: S311 - a reproducible order
        self.seconds: dict[int, list[float]] = {}
        self.algorithms: dict[str, str] = {}
        self.cut: str | None = None
        self.window = self.waited = 0.0
        self.waits_known = True

    def line(self) -> Line:
        """Measure everything; the `collective` evidence."""
        wanted = wanted_sizes(self.context, self.name)
        bench = Bench(self.gang, self.name, wanted[-1])
        skipped = [why for why in self.gang.gather(bench.missing(wanted[0])) if why is not None]
        if skipped:
            return {"kind": "collective", "name": self.name, "skipped": str(skipped[0])}
        ticks = host.cpu_ticks()
        gc.collect()
        gc.disable()
        try:
            sizes = self._scouted(bench, wanted)
            for _ in range(ROUNDS):
                self._round(bench, sizes)
            # Rank 0's log speaks for all: what the ranks decide must rest on the same evidence.
            self.algorithms = _first(self.gang.gather(_algorithms(self.gang, self.name)))
            self._more(bench)
        finally:
            gc.enable()
        steal = host.share("steal", ticks, host.cpu_ticks())
        stolen = self.gang.maxima([-1.0 if steal is None else steal])[0]
        return {**self._plain(), "steal_share": None if stolen < 0 else stolen, "cut": self.cut}

    def _scouted(self, bench: Bench, wanted: Sequence[int]) -> list[int]:
        """The sizes that the budget allows: each is called once, and the first too slow one ends the list."""
        limit, times = self.budget.longest_call_s, list[float]()
        for size in wanted:
            slow = len(times) > 1 and times[-1] > 4 * times[0]
            foreseen = times[-1] * size / wanted[len(times) - 1] if slow else 0.0
            if foreseen <= 1.5 * limit:
                # The first call of a size also makes connections and buffers.
                first_two = [self._timed(bench, size) for _ in range(2)]
                times.append(min(self.gang.maxima(first_two)))
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
            before, began = threads.waited(), time.perf_counter()
            mine = []
            for _ in range(REPEATS):
                self.gang.barrier()
                mine.append(self._timed(bench, size))
            after = threads.waited()
            self.window += time.perf_counter() - began
            self.waits_known &= before is not None and after is not None
            self.waited += (after or 0.0) - (before or 0.0)
            self.seconds.setdefault(size, []).extend(self.gang.maxima(mine))

    def _more(self, bench: Bench) -> None:
        """Further rounds of the judged size while its verdict is open."""
        began = time.monotonic()
        while True:
            found = self._found()
            size = judges.open_size(self.context.plan, setting_of(self.nodes, self.gang.backend), found)
            if size is None or len(self.seconds[size]) >= judges.CAP:
                return
            spent = self.gang.maxima([time.monotonic() - began])[0]  # one clock for all: all stop together
            if spent > self.budget.more_s:
                return
            self._round(bench, [size])

    def _timed(self, bench: Bench, size: int) -> float:
        """Seconds of one blocking call on this rank; CUDA events on an accelerator (untested on hardware)."""
        call = bench.operation(size)
        if not self.gang.cuda:
            start = time.perf_counter()
            call()
            return time.perf_counter() - start
        self.gang.sync()
        first, last = _event(), _event()
        first.record()
        call()
        last.record()
        last.synchronize()
        return float(first.elapsed_time(last)) / 1e3

    def _found(self) -> fabric.Collective:
        record = parse([json.dumps(self._plain())]).of(fabric.Collective)
        assert record is not None
        return record

    def _plain(self) -> Line:
        sizes = sorted(self.seconds)
        return {
            "kind": "collective",
            "name": self.name,
            "sizes": sizes,
            "seconds": [self.seconds[size] for size in sizes],
            "algorithms": self.algorithms,
            "queue_share": self._queue_share(),
        }

    def _queue_share(self) -> float | None:
        """The worst rank's seconds of waiting for a CPU per second; the same on all ranks."""
        known = self.waits_known and self.window > 0
        share = self.gang.maxima([self.waited / self.window if known else -1.0])[0]
        return None if share < 0 else share


def _algorithms(gang: Gang, name: str) -> dict[str, str]:
    """What NCCL's own log says it chose, where the launcher told it to write one."""
    pattern = os.environ.get("NCCL_DEBUG_FILE")
    if not gang.cuda or not pattern:
        return {}
    path = Path(pattern.replace("%h", "*").replace("%p", str(os.getpid())))
    texts = [found.read_text(errors="replace") for found in path.parent.glob(path.name)]
    chosen = nccl_tuning.parse("\n".join(texts))
    return {str(size): choice for (collective, size), choice in chosen.items() if collective == name}


def _event() -> torch.cuda.Event:
    made: Callable[..., torch.cuda.Event] = torch.cuda.Event
    return made(enable_timing=True)


def _first(items: Sequence[object]) -> dict[str, str]:
    first = items[0]
    return first if isinstance(first, dict) else {}
