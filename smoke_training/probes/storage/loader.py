"""Whether a DataLoader over real files keeps up with an emulated accelerator.

The accelerator is a sleep as long as it would compute on a batch (the method of DLIO), so no GPU is needed
to ask whether storage, workers and processors could feed one. Every file's pages are dropped from the cache
after it was written and after every read, so that a small data set stands for one that no node can cache.
"""

import os
import random
import shutil
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from smoke_training.evidence import Record
from smoke_training.evidence import storage as evidence
from smoke_training.probes.context import Context
from smoke_training.probes.group import Group
from smoke_training.probes.stopwatch import difference
from smoke_training.probes.storage.disk import Refusal, refusals_of_all, refusing, resident_share
from smoke_training.probes.storage.throughput import PREFIX, targets
from smoke_training.runtime import heartbeat, host

SAMPLE_BYTES = 114_660  # record length of MLPerf Storage's ResNet50
FILES = 512
WARMUP = 8  # batches: the first ones were prefetched, or wait for the workers to start
BATCHES = 128
WORKERS, PREFETCH = 2, 4


@dataclass(frozen=True, kw_only=True)
class Load:
    """What the emulated accelerator does: one batch of `samples` keeps it busy for `compute_s` seconds."""

    samples: int
    compute_s: float
    source: str


_CONFIGS = "mlcommons/storage configs/dlio/workload/resnet50_{}.yaml (2026)"
CPU = Load(
    samples=4,
    compute_s=0.0435,
    source=f"a tenth of an A100 on ResNet50, so that a small machine can feed it: {_CONFIGS.format('a100')}",
)
A100 = Load(samples=40, compute_s=0.0435, source=f"A100 on ResNet50: {_CONFIGS.format('a100')}")
H100 = Load(samples=40, compute_s=0.0224, source=f"H100 on ResNet50: {_CONFIGS.format('h100')}")


def load(group: Group) -> Load:
    """The load of this kind of device; accelerators without a published load get the H100's."""
    if not group.cuda:
        return CPU
    return A100 if "A100" in torch.cuda.get_device_name(group.device) else H100


class Files(Dataset[dict[str, Tensor]]):
    """Samples, one file each; an item tells the seconds spent inside reads and waiting for a CPU."""

    def __init__(self, folder: Path, count: int, length: int, seed: int) -> None:
        self.folder, self.count, self.length = folder, count, length
        self._order = list(range(count))
        random.Random(seed).shuffle(self._order)  # noqa: S311 - a reproducible order, not a secret
        self._clock: host.QueueClock | None = None

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        if self._clock is None:
            self._clock = host.QueueClock()  # here, because it counts for the thread that made it
        waited, began = self._clock.waited(), time.perf_counter()
        raw = read_cold(self._path(self._order[index % self.count]))
        seconds, after = time.perf_counter() - began, self._clock.waited()
        queue = difference(waited, after)
        return {
            "data": torch.frombuffer(raw, dtype=torch.uint8),
            "read": torch.tensor(seconds, dtype=torch.float64),
            "queue": torch.tensor(-1.0 if queue is None else queue, dtype=torch.float64),
        }

    def create(self) -> None:
        """Write all files durably and drop their pages."""
        self.folder.mkdir(parents=True, exist_ok=True)
        noise = os.urandom(SAMPLE_BYTES)
        paths = [self._path(number) for number in range(self.count)]
        for number, path in enumerate(paths):
            path.write_bytes(noise[number:] + noise[:number])
        for path in paths:
            file = os.open(path, os.O_RDWR)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)

    def resident_share(self) -> float | None:
        """Share of some files' pages still in the page cache."""
        shares = []
        for number in range(0, self.count, max(1, self.count // 16)):
            file = os.open(self._path(number), os.O_RDWR)
            shares.append(resident_share(file))
            os.close(file)
        known = [share for share in shares if share is not None]
        return sum(known) / len(known) if len(known) == len(shares) and known else None

    def _path(self, number: int) -> Path:
        return self.folder / f"sample-{number:05d}"


def read_cold(path: Path) -> bytearray:
    """The bytes of a file, whose pages are dropped afterwards for the next reader."""
    file = os.open(path, os.O_RDONLY)
    try:
        raw = bytearray(os.fstat(file).st_size)
        view = memoryview(raw)
        while view and (done := os.readv(file, [view])):
            view = view[done:]
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)
    return raw


def measure(context: Context) -> Iterator[Record]:
    """The `loader` evidence on the plan's first storage target."""
    group, target, chosen = context.group, targets(context)[0], load(context.group)
    folder = Path(target.path) / f"{PREFIX}{uuid.uuid4().hex[:12]}-{group.rank}"
    files = Files(folder, FILES, (WARMUP + BATCHES) * chosen.samples, context.plan.seed + group.rank)
    refusals: list[Refusal] = []
    try:
        with refusing(refusals, "write", folder, FILES * SAMPLE_BYTES):
            files.create()
        refused = refusals_of_all(group, refusals, "loader", target.name)
        if refused:
            yield from refused
            return
        resident = files.resident_share()
        group.barrier()
        ranks = group.gather(_feed(files, chosen))
        shares = group.gather((group.node, resident))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    known = all(value >= 0 for fed in ranks for value in fed.queue)
    yield evidence.Loader(
        name=target.name,
        path=target.path,
        nodes=tuple(node for node, _ in shares),
        workers=WORKERS,
        batch_samples=chosen.samples,
        sample_bytes=SAMPLE_BYTES,
        source=chosen.source,
        compute=tuple(tuple(fed.compute) for fed in ranks),
        stall=tuple(tuple(fed.stall) for fed in ranks),
        stall_queue=tuple(tuple(fed.queue) for fed in ranks) if known else None,
        read_seconds=tuple(fed.read_s for fed in ranks),
        resident_share=tuple(share for _, share in shares),
    )


@dataclass
class Fed:
    """Seconds per batch of one rank after the warm-up, -1 for unknown; reads in total over its workers."""

    compute: list[float] = field(default_factory=list)
    stall: list[float] = field(default_factory=list)
    queue: list[float] = field(default_factory=list)
    read_s: float = 0.0


def _feed(files: Files, chosen: Load) -> Fed:
    """Run the emulated accelerator over all batches."""
    batches = DataLoader(files, batch_size=chosen.samples, num_workers=WORKERS, prefetch_factor=PREFETCH)
    fed = Fed()
    clock, heart = host.QueueClock(), heartbeat.own()
    waited, ready = clock.waited(), time.perf_counter()
    for number, batch in enumerate(batches):
        arrived = time.perf_counter()
        heart.beat()
        time.sleep(chosen.compute_s)
        done, now = time.perf_counter(), clock.waited()
        if number >= WARMUP:
            own = difference(waited, now)
            workers = float(batch["queue"].sum()) / WORKERS if float(batch["queue"].min()) >= 0 else None
            fed.stall.append(arrived - ready)
            fed.compute.append(done - arrived)
            fed.queue.append(-1.0 if own is None or workers is None else own + workers)
            fed.read_s += float(batch["read"].sum())
        ready, waited = done, now
    return fed
