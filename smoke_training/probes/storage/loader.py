"""Measure whether a DataLoader over real files keeps up with an emulated accelerator.

The accelerator is a sleep as long as it would compute on a batch (the method of DLIO). Every file's pages are
dropped from the cache after each write and read, so that a small data set stands for one that nothing caches.
"""

import math
import os
import random
import shutil
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from smoke_training.evidence import Record
from smoke_training.evidence import storage as evidence
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.stopwatch import Series, difference
from smoke_training.probes.storage.disk import Refusals, forgotten
from smoke_training.probes.storage.throughput import fresh_name, targets
from smoke_training.runtime import host

SAMPLE_BYTES = 114_660  # record length of MLPerf Storage's ResNet50
FILES = 512
BATCHES = 128
# Batches of each worker. The first ones are not counted: they are prefetched, or wait for workers to start.
PREFETCH = 4


@dataclass(frozen=True, kw_only=True)
class Load:
    """Load of the emulated accelerator: one batch of `samples` keeps it busy for `compute_s` seconds.

    `workers` processes of each rank read for it.
    """

    samples: int
    compute_s: float
    workers: int
    source: str


_CONFIGS = "mlcommons/storage configs/dlio/workload/resnet50_{}.yaml (2026)"
CPU = Load(
    samples=4,
    compute_s=0.0435,
    workers=2,
    source=f"a tenth of an A100 on ResNet50, so that a small machine can feed it: {_CONFIGS.format('a100')}",
)
A100 = Load(samples=40, compute_s=0.0435, workers=8, source=f"A100 on ResNet50: {_CONFIGS.format('a100')}")
H100 = Load(samples=40, compute_s=0.0224, workers=8, source=f"H100 on ResNet50: {_CONFIGS.format('h100')}")


def load(group: Group) -> Load:
    """Return the load of this kind of device; accelerators without a published load get the H100's.

    At most as many workers as CPUs per rank, at least two.
    """
    if not group.cuda:
        return CPU
    found = A100 if "A100" in torch.cuda.get_device_name(group.device) else H100
    fitting = min(found.workers, host.usable_cpus() // group.nodes().count(group.node))
    return replace(found, workers=min(group.gather(max(CPU.workers, fitting))))


class SampleFiles(Dataset[dict[str, Tensor]]):
    """Samples, one file each; an item has the seconds inside reads and waiting for a CPU (or NaN)."""

    def __init__(self, folder: Path, count: int, length: int, seed: int) -> None:
        self.paths, self.length = [folder / f"sample-{number:05d}" for number in range(count)], length
        self._order = list(range(count))
        random.Random(seed).shuffle(self._order)  # noqa: S311 - a reproducible order, not a secret
        self._reads: Series | None = None

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        if self._reads is None:
            self._reads = Series()  # here, because it counts the waiting of its creating thread
        with self._reads.timed():
            raw = read_cold(self.paths[self._order[index % len(self.paths)]])
        queue = self._reads.queue[-1]
        return {
            "data": torch.frombuffer(raw, dtype=torch.uint8),
            "read": torch.tensor(self._reads.wall[-1], dtype=torch.float64),
            "queue": torch.tensor(math.nan if queue is None else queue, dtype=torch.float64),
        }

    def create(self) -> float | None:
        """Write all files durably and drop their pages; return the share still in the page cache."""
        noise = os.urandom(SAMPLE_BYTES)
        for number, path in enumerate(self.paths):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(noise[number:] + noise[:number])
        shares = forgotten(self.paths)
        return statistics.fmean(shares) if shares else None


def read_cold(path: Path) -> bytearray:
    """Return the bytes of a file, and drop its pages for the next reader."""
    with path.open("rb", buffering=0) as file:
        raw = bytearray(file.read())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return raw


def measure(context: ProbeContext) -> Iterator[Record]:
    """The `loader` evidence on the plan's first storage target."""
    group, target, chosen = context.group, targets(context)[0], load(context.group)
    folder = Path(target.path) / f"{fresh_name()}-{group.rank}"
    batches = chosen.workers * PREFETCH + BATCHES
    files = SampleFiles(folder, FILES, batches * chosen.samples, context.plan.seed + group.rank)
    refusals, resident = Refusals(group, "loader", target.name), None
    try:
        with refusals.collected("write", folder, FILES * SAMPLE_BYTES):
            resident = files.create()
        refused = refusals.of_all()
        if refused:
            yield from refused
            return
        group.barrier()
        fed = _feed(group, files, chosen)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    ranks = group.gather((group.node, sum(batch.read for batch in fed), resident))
    yield evidence.LoaderTimes(
        name=target.name,
        path=target.path,
        nodes=tuple(node for node, _, _ in ranks),
        workers=chosen.workers,
        batch_samples=chosen.samples,
        sample_bytes=SAMPLE_BYTES,
        source=chosen.source,
        compute=group.rows([batch.compute for batch in fed]),
        stall=group.rows([batch.stall for batch in fed]),
        stall_queue=group.known_rows([batch.queue for batch in fed]),
        read_seconds=tuple(read_s for _, read_s, _ in ranks),
        resident_share=tuple(share for _, _, share in ranks),
    )


class Fed(NamedTuple):
    """Seconds of one batch on this rank: computed, waited for the batch, waited for a CPU if known, read."""

    compute: float
    stall: float
    queue: float | None
    read: float


def _feed(group: Group, files: SampleFiles, chosen: Load) -> list[Fed]:
    """Run the emulated accelerator over all batches; return those after the prefetched ones."""
    batches = DataLoader(
        files, batch_size=chosen.samples, num_workers=chosen.workers, prefetch_factor=PREFETCH
    )
    fed, clock = list[Fed](), host.QueueClock()
    waited, ready = clock.waited(), time.perf_counter()
    for batch in batches:
        arrived = time.perf_counter()
        group.beat()
        time.sleep(chosen.compute_s)
        done, now = time.perf_counter(), clock.waited()
        own, workers = difference(waited, now), float(batch["queue"].sum()) / chosen.workers
        queue = None if own is None or math.isnan(workers) else own + workers
        fed.append(Fed(done - arrived, arrived - ready, queue, float(batch["read"].sum())))
        ready, waited = done, now
    return fed[chosen.workers * PREFETCH :]
