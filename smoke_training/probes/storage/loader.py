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
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from smoke_training.probes.context import Context, Line
from smoke_training.probes.group import Gang
from smoke_training.probes.storage.disk import Refusal, refusing, resident_share
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


def load(gang: Gang) -> Load:
    """The load of this kind of device; accelerators without a published load get the H100's."""
    if not gang.cuda:
        return CPU
    return A100 if "A100" in torch.cuda.get_device_name(gang.device) else H100


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
        queue = -1.0 if waited is None or after is None else after - waited
        return {
            "data": torch.frombuffer(raw, dtype=torch.uint8),
            "read": torch.tensor(seconds, dtype=torch.float64),
            "queue": torch.tensor(queue, dtype=torch.float64),
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


def measure(context: Context) -> Iterator[Line]:
    """The `loader` evidence on the plan's first storage target."""
    gang, target, chosen = context.gang, targets(context)[0], load(context.gang)
    folder = Path(target.path) / f"{PREFIX}{uuid.uuid4().hex[:12]}-{gang.rank}"
    files = Files(folder, FILES, (WARMUP + BATCHES) * chosen.samples, context.plan.seed + gang.rank)
    refusals: list[Refusal] = []
    try:
        with refusing(refusals, "write", folder, FILES * SAMPLE_BYTES):
            files.create()
        where = ("loader", target.name, gang.rank, gang.node)
        refused = [line for line in gang.gather([item.line(*where) for item in refusals]) if line]
        if refused:
            yield from (line for lines in refused if isinstance(lines, list) for line in lines)
            return
        resident = files.resident_share()
        gang.barrier()
        mine = _feed(files, chosen)
        columns = [item for item in gang.gather(mine) if isinstance(item, dict)]
        shares = gang.gather((gang.node, resident))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    queues = [column["stall_queue"] for column in columns]
    yield {
        "kind": "loader",
        "name": target.name,
        "path": target.path,
        "nodes": [item[0] for item in shares if isinstance(item, tuple)],
        "workers": WORKERS,
        "batch_samples": chosen.samples,
        "sample_bytes": SAMPLE_BYTES,
        "source": chosen.source,
        "compute": [column["compute"] for column in columns],
        "stall": [column["stall"] for column in columns],
        "stall_queue": None if any(value < 0 for row in queues for value in row) else queues,
        "read_seconds": [column["read_seconds"] for column in columns],
        "resident_share": [item[1] for item in shares if isinstance(item, tuple)],
    }


def _feed(files: Files, chosen: Load) -> dict[str, object]:
    """Run the emulated accelerator over all batches; this rank's columns, without the warm-up."""
    batches = DataLoader(files, batch_size=chosen.samples, num_workers=WORKERS, prefetch_factor=PREFETCH)
    compute, stall, queue, read = list[float](), list[float](), list[float](), 0.0
    clock, heart = host.QueueClock(), heartbeat.own()
    waited, ready = clock.waited(), time.perf_counter()
    for number, batch in enumerate(batches):
        arrived = time.perf_counter()
        heart.beat()
        time.sleep(chosen.compute_s)
        done, now = time.perf_counter(), clock.waited()
        if number >= WARMUP:
            own = None if waited is None or now is None else now - waited
            workers = float(batch["queue"].sum()) / WORKERS if float(batch["queue"].min()) >= 0 else None
            stall.append(arrived - ready)
            compute.append(done - arrived)
            queue.append(-1.0 if own is None or workers is None else own + workers)
            read += float(batch["read"].sum())
        ready, waited = done, now
    return {"compute": compute, "stall": stall, "stall_queue": queue, "read_seconds": read}
