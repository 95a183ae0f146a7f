"""Rate of false accusations by the verdict layer: real traces, resampled in blocks and judged again.

    python benchmarks/validation/verdict_resampling.py [--trials 100000] [--ranks 4]
    python benchmarks/validation/verdict_resampling.py --samples .trainstack/fault-detection/healthy*.jsonl.gz

`benchmarks/validation/fault_detection.py --healthy` leaves such traces behind. Without `--samples`, healthy
runs are recorded first: whole gangs on this machine's loopback and, as root, in the laboratory on wires of
a declared rate (`tests/faults`), each once by itself and once beside a neighbour that takes a core now and
then. One trial picks a recorded run, redraws every series of times in it by a circular block bootstrap
(whole stretches of ten iterations, all ranks and all series of a record together, so that what they share
and how long a disturbance lasts is kept), and judges the result as `smoke_training judge` would. A FAIL of
a required check is a false one: no fault was there. The share is given with its Wilson bound of 95 %.
"""

import argparse
import collections
import dataclasses
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.wilson import wilson  # noqa: E402
from smoke_training import evidence, verdict  # noqa: E402
from smoke_training.cli import files  # noqa: E402
from smoke_training.evidence.registry import Evidence  # noqa: E402
from smoke_training.evidence.world import PlanText  # noqa: E402
from smoke_training.model import Judgement, Verdict  # noqa: E402
from smoke_training.plan import Plan, parse  # noqa: E402
from tests.faults import system  # noqa: E402
from tests.faults.lab import Lab  # noqa: E402
from tests.faults.neighbour import NoisyNeighbour  # noqa: E402
from tests.faults.network import Wires  # noqa: E402
from tests.faults.plans import document  # noqa: E402

BLOCK = 10  # iterations: the length over which the statistics allow dependence, too
SHORTEST = 8  # values: a shorter tuple of times is no series
PHASES = ("fitness", "collectives", "training")
WORDS = ("-m", "smoke_training")
NEIGHBOUR = """
import time
while True:
    until = time.monotonic() + 0.2
    while time.monotonic() < until: pass
    time.sleep(0.6)
"""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--samples", type=Path, nargs="+")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="resampling-") as scratch:
        paths = chosen.samples or list(record(chosen.ranks, Path(scratch)))
        traces = [read(path) for path in paths]
    for path, (plan, found) in zip(paths, traces, strict=True):
        print(
            f"{path.name}: {verdict.judge(plan, found).verdict} as recorded, {described(found)}", flush=True
        )
    return resample(traces, chosen.trials, random.Random(chosen.seed))


def record(ranks: int, folder: Path) -> Iterator[Path]:
    """Healthy runs of the phases whose samples are drawn."""
    for neighbour in (False, True):
        out = folder / f"loopback{'-neighbour' * neighbour}.json"
        words = [*WORDS, "run", "--ranks", str(ranks), "--only", ",".join(PHASES), "--out", str(out)]
        busy = subprocess.Popen([sys.executable, "-c", NEIGHBOUR]) if neighbour else None
        try:
            subprocess.run([sys.executable, *words], cwd=ROOT, check=False, capture_output=True)
        finally:
            if busy is not None:
                busy.kill()
                busy.wait()
        yield out.with_name(f"{out.stem}.samples.jsonl")
    if system.missing() is None:
        yield from shaped(folder)


def shaped(folder: Path) -> Iterator[Path]:
    """The same phases over two nodes of the laboratory, whose wire two cores can fill."""
    wires = Wires(rail_gbit_s=0.25)
    for inject in ((), (NoisyNeighbour(),)):
        with Lab(2, wires) as lab:
            outcome = lab.run(document(2, wires, ("world", *PHASES)), inject)
        path = folder / f"shaped{'-neighbour' * len(inject)}.samples.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in outcome.samples))
        yield path


def read(path: Path) -> tuple[Plan, Evidence]:
    """Plan and evidence of a recorded run."""
    found = evidence.parse(files.samples(path))
    asked = found.of(PlanText)
    if asked is None:
        raise SystemExit(f"{path}: no plan in the samples")
    return parse(asked.document), found


def described(found: Evidence) -> str:
    """Amount of samples of a run."""
    counts = collections.Counter[str]()
    for item in found.records:
        for values in series(item).values():
            counts[type(item).__name__] += sum(len(row) for row in rows(values))
    return ", ".join(f"{count} times of {name}" for name, count in counts.items())


def series(item: object) -> dict[str, Any]:
    """The fields of a record that are series of times: tuples of floats, one or one per rank or size."""
    if not dataclasses.is_dataclass(item):
        return {}
    found = {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
    return {name: values for name, values in found.items() if is_series(values)}


def is_series(values: object) -> bool:
    return isinstance(values, tuple) and all(
        len(row) >= SHORTEST and all(isinstance(value, float) for value in row) for row in rows(values)
    ) and len(rows(values)) > 0  # fmt: skip


def rows(values: tuple[Any, ...]) -> Sequence[Sequence[Any]]:
    if values and all(isinstance(row, tuple) for row in values):
        return values
    return (values,)


def redrawn(found: Evidence, dice: random.Random) -> Evidence:
    """The same evidence with every series drawn anew; series of one record and length stay side by side."""
    return Evidence(records=[redraw(item, dice) for item in found.records], unreadable=found.unreadable)


def redraw(item: Any, dice: random.Random) -> Any:
    drawn: dict[int, list[int]] = {}

    def again(row: Sequence[float]) -> tuple[float, ...]:
        order = drawn.setdefault(len(row), blocks(len(row), dice))
        return tuple([row[index] for index in order])

    changes = {
        name: tuple(again(row) for row in values) if isinstance(values[0], tuple) else again(values)
        for name, values in series(item).items()
    }
    return dataclasses.replace(item, **changes) if changes else item


def blocks(count: int, dice: random.Random) -> list[int]:
    """Indices of a circular block bootstrap (Politis & Romano 1992)."""
    found: list[int] = []
    while len(found) < count:
        first = dice.randrange(count)
        found += [(first + step) % count for step in range(min(BLOCK, count - len(found)))]
    return found


def resample(traces: Sequence[tuple[Plan, Evidence]], trials: int, dice: random.Random) -> int:
    """Judge `trials` resampled runs and print the verdicts; return 1 if any was accused."""
    verdicts, accused = collections.Counter[str](), collections.Counter[str]()
    undecided, began = collections.Counter[str](), time.monotonic()
    for trial in range(trials):
        plan, found = traces[trial % len(traces)]
        judged = verdict.judge(plan, redrawn(found, dice))
        verdicts[judged.verdict] += 1
        accused.update(of_status(judged, Verdict.FAIL))
        undecided.update(of_status(judged, Verdict.INCONCLUSIVE))
        if trial % 1000 == 999:
            print(f"{trial + 1} judged in {time.monotonic() - began:.0f} s: {dict(verdicts)}", flush=True)
    false = verdicts[Verdict.FAIL]
    _, high = wilson(false, trials)
    print(f"\n{false} false FAIL in {trials} judged runs: at most {high:.2e} (Wilson, 95 %)")
    print(f"verdicts {dict(verdicts)}; false FAIL by check {dict(accused)}; undecided {dict(undecided)}")
    return 1 if false else 0


def of_status(judged: Judgement, status: Verdict) -> list[str]:
    return [check.id for check in judged.checks if check.required and check.status is status]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
