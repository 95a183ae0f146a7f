"""Work all devices at once for minutes: rate, power, and the bits of steps that are repeated over and over.

Every result is reduced on the device to a sum of its bits, which is compared with the first one on the same
input, so that a single wrong step is seen. Before that copies are timed, one rank of a node at a time because
GPUs may share a link, and small files. On CPUs the same code runs, with small matrices. Untested on GPUs.
"""

import contextlib
import os
import random
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from smoke_training.evidence import Record
from smoke_training.evidence.gpus import Burn
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.storage import throughput
from smoke_training.probes.training import fitness
from smoke_training.runtime.nvml import Nvml

T = TypeVar("T")

SIZE, SIZE_CPU = 8192, 192
INPUTS, STEPS = 4, 8  # steps between two looks at their bits
WINDOWS = 60  # records of a run, which grow with it: an interrupted one leaves the last
COPIED, COPIED_CPU, COPIES = 1 << 30, 1 << 24, 5
FILE_BYTES, PAGE, FILES_S = 32 << 20, 4096, 0.5


def measure(context: ProbeContext) -> Iterator[Record]:
    """Yield `burn` evidence at the end of every window, for the seconds of the plan."""
    group, planned = context.group, context.plan.burn_s or 0.0
    bench = RedundantSteps(group)
    copies = {kind: tuple(group.gather(rate)) for kind, rate in _copies(group).items()}
    nodes, files = _files(context)
    reader, driver = fitness.window_reader(group), _driver(group)
    watts, rates, began = list[tuple[float, float]](), list[float](), time.monotonic()
    group.barrier()
    for window in count(1):
        steps, seconds, until = 0, 0.0, began + planned * window / WINDOWS
        while not steps or time.monotonic() < until:
            seconds += group.seconds(bench.work)
            bench.compare()
            steps += STEPS
            reader.sample_clock()
            group.beat()
        for reading in driver.read() if driver is not None else ():
            if reading.power is not None and reading.power_limit is not None:
                watts.append((reading.power, reading.power_limit))
        rates.append(4 * bench.size**3 * steps / seconds / 1e12)
        spent, wrong = group.maxima([time.monotonic() - began, float(bench.wrong)])
        power = (statistics.median(w for w, _ in watts), watts[-1][1]) if watts else None
        yield Burn(
            planned_s=planned,
            seconds=spent,
            dtype=str(bench.dtype).removeprefix("torch."),
            size=bench.size,
            steps=tuple(group.gather(bench.steps)),
            wrong=tuple(group.gather(bench.wrong)),
            first=tuple(group.gather(tuple(bench.first))),
            rates=group.rows(rates),
            watts=tuple(group.gather(power)),
            windows=fitness.windows(group, reader),
            copies=copies,
            nodes=nodes,
            files=files,
        )
        # One clock for all, so that all stop together; after a wrong step nothing else is relevant.
        if spent >= planned or wrong:
            return


class RedundantSteps:
    """The step and its inputs, the same on all ranks; counts steps with other bits than the first."""

    def __init__(self, group: Group) -> None:
        self.size = SIZE if group.cuda else SIZE_CPU
        self.dtype = torch.bfloat16 if group.cuda else torch.float32
        dice = torch.Generator().manual_seed(self.size)  # on the CPU: the same numbers for all devices
        drawn = list[Tensor]()
        for _ in range(INPUTS + 1):
            drawn.append(torch.randn(self.size, self.size, generator=dice).to(group.device, self.dtype))
            group.beat()
        *self.inputs, self.weights = drawn
        self.sums = torch.zeros(STEPS, dtype=torch.int64, device=group.device)
        self.steps = self.wrong = 0
        self.work()
        self.first = self.sums.tolist()[:INPUTS]

    def work(self) -> None:
        """Do the steps."""
        whole = torch.int16 if self.dtype.itemsize == 2 else torch.int32
        for number in range(STEPS):
            result = self.step(self.inputs[number % INPUTS])
            self.sums[number] = result.view(whole).sum(dtype=torch.int64)

    def step(self, matrix: Tensor) -> Tensor:
        """Two products of (size, size) matrices with an activation between them."""
        return functional.gelu(matrix @ self.weights) @ self.weights

    def compare(self) -> None:
        """Count the last steps, and those with other bits."""
        self.steps += STEPS
        self.wrong += sum(got != self.first[n % INPUTS] for n, got in enumerate(self.sums.tolist()))


def _copies(group: Group) -> Mapping[str, float | None]:
    """Return GB/s of this rank's copies: bytes read and written for memory, else bytes moved."""
    size = COPIED if group.cuda else COPIED_CPU
    mine, other = (torch.ones(size, dtype=torch.uint8, device=group.device) for _ in "ab")
    host = torch.ones(size, dtype=torch.uint8, pin_memory=group.cuda)
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "memory": (lambda: other.copy_(mine), 2 * size),
        "to_device": (lambda: mine.copy_(host, non_blocking=True), size),
        "to_host": (lambda: host.copy_(mine, non_blocking=True), size),
    }
    peer = _peer(group, size)
    if peer is not None:
        ways["to_peer"] = (lambda: peer.copy_(mine, non_blocking=True), size)
    found = dict[str, float | None](to_peer=None)
    for turn in range(max(group.gather(group.local_rank)) + 1):
        group.barrier()
        if turn == group.local_rank:
            for kind, (copy, moved) in ways.items():
                copy()
                found[kind] = moved / statistics.median(group.seconds(copy) for _ in range(COPIES)) / 1e9
                group.beat()
    group.barrier()
    return dict(sorted(found.items()))


def _peer(group: Group, size: int) -> Tensor | None:
    """Return memory of the next device of this node; on CPUs a second buffer; None without peer access."""
    if not group.cuda:
        return torch.ones(size, dtype=torch.uint8)
    there = (group.local_rank + 1) % torch.cuda.device_count()
    if there == group.local_rank or not torch.cuda.can_device_access_peer(group.local_rank, there):
        return None
    return torch.ones(size, dtype=torch.uint8, device=torch.device("cuda", there))


def _files(context: ProbeContext) -> tuple[tuple[int, ...], Mapping[str, tuple[float | None, ...]]]:
    """Return the nodes and their operations per second on every storage target; None where it was refused."""
    group, found = context.group, dict[str, float | None]()
    for target in throughput.targets(context) if group.local_rank == 0 else ():
        folder = Path(target.path) / throughput.fresh_name()
        try:
            for kind, rate in _operations(folder):
                found[f"{target.name}.{kind}"] = rate
                group.beat()
        except OSError as error:
            found[f"{target.name}: refused, {error.strerror}"] = None
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    every = [item for item in group.gather((group.node, found) if group.local_rank == 0 else None) if item]
    kinds = sorted({kind for _, rates in every for kind in rates})
    return tuple(node for node, _ in every), {
        kind: tuple(rates.get(kind) for _, rates in every) for kind in kinds
    }


def _operations(folder: Path) -> Iterator[tuple[str, float]]:
    """Reads and durable writes of single pages in any order, then creation and removal of empty files."""
    folder.mkdir(parents=True)
    file = os.open(folder / "pages", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.pwrite(file, os.urandom(FILE_BYTES), 0)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
        pages = list(range(0, FILE_BYTES, PAGE))
        random.Random(1).shuffle(pages)  # noqa: S311 - a reproducible order
        yield "reads", _rate(pages, lambda at: os.pread(file, PAGE, at))
        page = os.urandom(PAGE)

        def write(at: int) -> None:
            os.pwrite(file, page, at)
            os.fdatasync(file)

        yield "writes", _rate(pages, write)
    finally:
        os.close(file)
    names = [folder / f"empty-{number}" for number in range(2000)]
    yield "creations", _rate(names, Path.touch)
    yield "removals", _rate([name for name in names if name.exists()], Path.unlink)


def _rate(items: list[T], work: Callable[[T], object]) -> float:
    """Operations per second, until all items are done or time is up."""
    began = time.perf_counter()
    for done, item in enumerate(items, 1):
        work(item)
        if (spent := time.perf_counter() - began) > FILES_S:
            return done / spent
    return len(items) / (time.perf_counter() - began)


def _driver(group: Group) -> Nvml | None:
    if group.cuda:
        with contextlib.suppress(OSError):
            return Nvml(f"GPU-{torch.cuda.get_device_properties(group.device).uuid}")
    return None
