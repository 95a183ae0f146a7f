"""Rates of found and correctly attributed injected faults, and of accused healthy clusters.

    .venv/bin/python benchmarks/validation/fault_detection.py [--runs 20] [--classes "1 % loss" SIGKILL ...]
    .venv/bin/python benchmarks/validation/fault_detection.py --healthy 200

Needs root. Every run is a whole run of the product in a laboratory of its own (`tests/faults`), with a seed
and a victim of its own. Lines are appended to `benchmarks/records/fault_detection.jsonl`; a run that is there
already is not run again: an interrupted benchmark goes on where it stopped, and the tables say of which code
the lines are (another record, `--record`, starts anew). A run whose fault the injector's own counter could
not prove is void: it is listed, not counted. Half of the healthy runs have a noisy neighbour. "All right" is
FAIL, the right culprit with the right cause, and no one else accused. Shares are Wilson score bounds of 95 %.
The evidence of every run is kept below `.trainstack/`, for `smoke judge` or a reader.
"""

import argparse
import collections
import dataclasses
import gzip
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.validation.run_records import Line, recorded  # noqa: E402
from benchmarks.wilson import wilson  # noqa: E402
from smoke_training.runtime import facts  # noqa: E402
from tests.faults import catalog, system  # noqa: E402
from tests.faults.catalog import Case  # noqa: E402
from tests.faults.injector import InjectorError  # noqa: E402
from tests.faults.system import LabError  # noqa: E402

RECORD = ROOT / "benchmarks" / "records" / "fault_detection.jsonl"
EVIDENCE = ROOT / ".trainstack" / "fault-detection"
HEALTHY, NOISY = "healthy", "healthy, noisy neighbour"
FIRST_SEED = 1000
VOIDS_AT_MOST = 5  # in a row, of one class: then something is wrong with the laboratory


def main(arguments: list[str]) -> int:
    chosen = _parser().parse_args(arguments)
    reason = system.missing()
    if reason is not None:
        print(f"skipped: {reason}")
        return 4
    digest, done = facts.code_digest(), recorded(chosen.record)
    for name, make, seeds in _wanted(chosen):
        have = {line["seed"] for line in done if line["class"] == name and line["void"] is None}
        done += _measure(name, make, [seed for seed in seeds if seed not in have], digest, chosen.record)
    print(_tables(done))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20, help="runs per fault class")
    parser.add_argument("--classes", nargs="*", choices=list(catalog.CLASSES), default=list(catalog.CLASSES))
    parser.add_argument("--healthy", type=int, default=0, help="healthy runs instead, half of them disturbed")
    parser.add_argument("--record", type=Path, default=RECORD)
    return parser


def _wanted(chosen: argparse.Namespace) -> Iterator[tuple[str, Callable[[int], Case], list[int]]]:
    if chosen.healthy:
        for seed in range(FIRST_SEED, FIRST_SEED + (chosen.healthy + 1) // 2):  # in turns, against drift
            yield HEALTHY, catalog.healthy, [seed]
            yield NOISY, catalog.disturbed, [seed]
        return
    for name in chosen.classes:
        yield name, catalog.CLASSES[name], list(range(FIRST_SEED, FIRST_SEED + chosen.runs))


def _measure(
    name: str, make: Callable[[int], Case], seeds: list[int], digest: str, record: Path
) -> Iterator[Line]:
    record.parent.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        for _ in range(VOIDS_AT_MOST):
            line = {
                "class": name,
                "seed": seed,
                "code_sha256": digest,
                **_one(make(seed), seed, EVIDENCE / f"{name} {seed}.jsonl.gz"),
            }
            with record.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
            result = line["void"] or f"{line['status']} {line['accused']} {line['wall_s']:.1f} s"
            print(f"{name}, seed {seed}: {result}", flush=True)
            yield line
            if line["void"] is None:
                break
        else:
            print(f"{name}, seed {seed}: given up after {VOIDS_AT_MOST} void runs", flush=True)


def _one(case: Case, seed: int, kept: Path) -> Line:
    """One run, its evidence kept; void with a reason if the laboratory broke or could not show the fault."""
    began = time.monotonic()
    load = os.getloadavg()[0]
    try:
        outcome = case.run(seed)
    except (InjectorError, LabError) as error:
        return {"void": f"{type(error).__name__}: {error}"[:3000], "wall_s": time.monotonic() - began}
    kept.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(kept, "wt") as stream:
        stream.writelines(json.dumps(sample) + "\n" for sample in outcome.samples)
    answer = catalog.answer(case, outcome)
    return {
        "void": None,
        **dataclasses.asdict(answer),
        "accused": outcome.culprits(),
        "undecided": outcome.undecided(),
        "proofs": outcome.proofs,
        "wall_s": outcome.wall_s,
        "load": load,
    }


def _tables(lines: list[Line]) -> str:
    voids = [line for line in lines if line["void"] is not None]
    counted = [line for line in lines if line["void"] is None]
    parts = []
    if any(line["class"] in catalog.CLASSES for line in counted):
        parts += [
            "| fault | runs | FAIL | right culprit | right cause | others accused | all right | seconds |",
            "|---|---|---|---|---|---|---|---|",
            *(_row(name, counted) for name in catalog.CLASSES if any(_of(name, counted))),
        ]
    if any(line["class"] in (HEALTHY, NOISY) for line in counted):
        parts += [
            "",
            "| cluster | runs | FAIL (upper bound) | INCONCLUSIVE (upper bound) | ERROR | seconds |",
            "|---|---|---|---|---|---|",
            *(_healthy_row(name, counted) for name in (HEALTHY, NOISY) if any(_of(name, counted))),
        ]
    load = statistics.median(line["load"] for line in counted) if counted else float("nan")
    codes = collections.Counter(line["code_sha256"][:12] for line in counted)
    result = ", ".join(f"{count} runs of code {digest}" for digest, count in codes.items())
    parts += [
        "",
        f"{result}. Void runs, not counted: {len(voids)}. Load when a run began, median: {load:.1f}.",
    ]
    return "\n".join(parts)


def _of(name: str, lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["class"] == name]


def _row(name: str, lines: list[Line]) -> str:
    mine = _of(name, lines)
    keys = ("detected", "right_culprit", "right_cause", "innocent")
    counts = " | ".join(str(sum(bool(line[key]) for line in mine)) for key in keys)
    good = sum(line["right"] for line in mine)
    right = f"{good} of {len(mine)} (>= {wilson(good, len(mine))[0]:.1%})"
    return f"| {name} | {len(mine)} | {counts} | {right} | {_seconds(mine)} |"


def _healthy_row(name: str, lines: list[Line]) -> str:
    mine = _of(name, lines)
    bad = [sum(line["status"] == status for line in mine) for status in ("FAIL", "INCONCLUSIVE", "ERROR")]
    shares = [f"{count} (<= {wilson(count, len(mine))[1]:.1%})" for count in bad[:2]]
    return f"| {name} | {len(mine)} | {shares[0]} | {shares[1]} | {bad[2]} | {_seconds(mine)} |"


def _seconds(lines: list[Line]) -> str:
    walls = sorted(line["wall_s"] for line in lines)
    return f"{statistics.median(walls):.1f} ({walls[0]:.1f} .. {walls[-1]:.1f})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
