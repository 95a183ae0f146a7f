"""Two ranks under torchrun: the probes of the training step, healthy and with faults put into one rank.

    torchrun --nproc-per-node 2 tests/smoke_training/two_ranks.py FOLDER

Rank 0 writes FOLDER/lines.jsonl: evidence lines with the name of their part under `part`.
"""

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

import smoke_training
from smoke_training import plan as plans
from smoke_training.evidence import Record, document_of
from smoke_training.instrumentation import InstrumentedRun
from smoke_training.judges.sampling import VerdictSampling
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import join, leave
from smoke_training.probes.training import fitness, numerics, parity, sharded, step, transformer

VICTIM, NAN_PASS, NAN_PARAMETER = 1, 33, "blocks.1.up.weight"
FLIP_SAMPLE, FLIP_PARAMETER = 20, "head.weight"
ODD_PASS = 13


def poison(rank: int) -> None:
    """One NaN into one gradient of the victim at one backward pass of the next model that is built."""
    build = transformer.build

    def poisoned(*arguments: object, **wishes: object) -> transformer.Transformer:
        transformer.build = build
        model = build(*arguments, **wishes)  # type: ignore[arg-type]
        passes = iter(range(10**9))

        def spoil(gradient: Tensor) -> Tensor | None:
            if next(passes) != NAN_PASS:
                return None
            spoilt = gradient.clone()
            spoilt.view(-1)[3] = float("nan")
            return spoilt

        if rank == VICTIM:
            model.get_parameter(NAN_PARAMETER).register_hook(spoil)  # type: ignore[no-untyped-call]
        return model

    transformer.build = poisoned


def corrupt(rank: int) -> None:
    """One bit of one reduced gradient of the victim, before the checksum is taken."""
    checksum = numerics.GradientWatch.checksum

    def flipped(watch: numerics.GradientWatch) -> None:
        if rank == VICTIM and len(watch.samples) == FLIP_SAMPLE:
            gradient = dict(watch._named)[FLIP_PARAMETER].grad
            assert gradient is not None
            gradient.view(-1).view(torch.int32)[5] ^= 1
        checksum(watch)

    numerics.GradientWatch.checksum = flipped  # type: ignore[method-assign,assignment]


def broken_training(context: ProbeContext) -> Iterator[Record]:
    """The training phase with both faults."""
    poison(context.group.rank)
    original = numerics.GradientWatch.checksum
    corrupt(context.group.rank)
    try:
        yield from step.measure(context)
    finally:
        numerics.GradientWatch.checksum = original  # type: ignore[method-assign]


def repeated(context: ProbeContext) -> Iterator[Record]:
    """The steps whose bits are compared on accelerators; the victim miscounts in one of them."""
    sampler = step.Sampler(context)
    passes = iter(range(10**9))

    def miscount(gradient: Tensor) -> Tensor:
        return gradient * 1.5 if next(passes) == ODD_PASS else gradient

    if context.group.rank == VICTIM:
        sampler.model.module.get_parameter(NAN_PARAMETER).register_hook(miscount)
    with sampler.watch as watch:
        sampler.repeat()
        yield watch.evidence("training")


class Loader:
    """Batches; those of the victim take a while to come."""

    def __init__(self, rank: int, count: int) -> None:
        self.rank, self.count = rank, count

    def __iter__(self) -> Iterator[Tensor]:
        for index in range(self.count):
            time.sleep(0.01 if self.rank == VICTIM else 0.0)
            yield transformer.tokens(transformer.STATE, 1, index * 2 + self.rank, torch.device("cpu"))


def instrumented(context: ProbeContext) -> Iterator[dict[str, object]]:
    """A user's own loop: rank 1 waits for data and computes slowly, rank 0 waits for its gradients."""
    rank = context.group.rank
    model = DistributedDataParallel(
        transformer.build(transformer.STATE, 1, torch.device("cpu"), torch.float32)
    )
    if rank == VICTIM:
        model.module.norm.register_forward_hook(lambda *_: time.sleep(0.02))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run: InstrumentedRun[Tensor]
    records: list[dict[str, Any]] = []
    loader = Loader(rank, 48)
    with smoke_training.instrument(model, optimizer, loader, every=8, on_record=records.append) as run:
        for batch in run.batches():
            model(batch).backward()
            optimizer.step()
            optimizer.zero_grad()
    # A peer on a busy machine may be late with the figures of its last window.
    compared = [record for record in records if record["straggler"]]
    yield {"kind": "instrument", "latest": compared[-1] if compared else run.latest, "problems": run.problems}


def sharded_slowly(context: ProbeContext) -> Iterator[Record]:
    """The sharded step on a network where the first pairs of steps use up the time."""
    sharded.BUDGET_S = 0.0
    yield from sharded.measure(context)


def main() -> None:
    joined = join(60, "cpu")
    folder = Path(sys.argv[1])
    plan = dataclasses.replace(plans.local_plan(joined.world), max_straggler_slowdown=3.0)
    context = ProbeContext(group=joined, plan=plan, scratch=folder, sampling=VerdictSampling(plan))
    parts: dict[str, Callable[[ProbeContext], Iterator[Any]]] = {
        "healthy": step.measure, "fitness": fitness.measure, "parity": parity.measure,
        "sharded": sharded.measure, "sharded slowly": sharded_slowly, "broken": broken_training,
        "repeated": repeated, "instrument": instrumented,
    }  # fmt: skip
    with (folder / f"lines-{joined.rank}.jsonl").open("w") as stream:
        for part, measure in parts.items():
            for found in measure(context):
                line = document_of(found) if isinstance(found, Record) else found
                stream.write(json.dumps({**line, "part": part}) + "\n")
    leave()


if __name__ == "__main__":
    main()
