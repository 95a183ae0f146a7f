"""Share of runs that find a fault, against its severity, and the variance of figures between healthy runs.

    .venv/bin/python benchmarks/validation/severity_curves.py [--runs 3] [--faults "slow rank"] [--at-most 5]
    .venv/bin/python benchmarks/validation/severity_curves.py --at-most 0        # only the tables

Needs root. Every run is a whole plan of the quick depth with default settings on two nodes of a laboratory of
network namespaces (tests/faults). The result of each run is one line,
appended to `benchmarks/records/severity_curves.jsonl`; a run that is there is not repeated, so that
`--at-most` portions add up. Rounds go over all faults and levels before the next seed, so that a record that
is cut has as many runs in each cell. A run whose fault the injector could not prove is void: listed, not
counted. Bounds are Clopper-Pearson, two-sided 95 %.
"""

import argparse
import dataclasses
import json
import math
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.validation.run_records import Line, recorded  # noqa: E402
from benchmarks.wilson import clopper_pearson  # noqa: E402
from smoke_training.runtime import facts  # noqa: E402
from tests.faults import catalog, system  # noqa: E402
from tests.faults.ebpf_loss import Loss  # noqa: E402
from tests.faults.injector import Injector, InjectorError  # noqa: E402
from tests.faults.lab import Run  # noqa: E402
from tests.faults.payload import Corruption, WrongGradient  # noqa: E402
from tests.faults.quota import Quota  # noqa: E402
from tests.faults.shaper import SlowLink  # noqa: E402
from tests.faults.stopkill import Signal  # noqa: E402
from tests.faults.storage_fault import Disks  # noqa: E402
from tests.faults.system import LabError  # noqa: E402

RECORD = ROOT / "benchmarks" / "records" / "severity_curves.jsonl"
FIRST_SEED = 2000
NONE = "none"
FIGURES = ("collective.", "fabric.", "training.", "storage.", "checkpoint.", "resume.")
LEAST = 1e-3  # of a figure whose relative variance means something
VOIDS_AT_MOST = 2  # of one run: a light fault may not be provable at all


@dataclasses.dataclass
class Pause(Signal):
    """Stop a rank for some seconds, then let it go on."""

    number: signal.Signals = signal.SIGSTOP
    after: str = "fitness"
    seconds: float = 5.0

    def watch(self, run: Run) -> None:
        super().watch(run)
        if self.pid is not None and self.seconds < run.elapsed() - self.sent:
            os.kill(self.pid, signal.SIGCONT)
            self.seconds = math.inf


@dataclasses.dataclass(frozen=True)
class Fault:
    """One kind of fault: its levels, lightest first, the injector of a level, and the causes that name it."""

    unit: str
    levels: tuple[float, ...]
    inject: Callable[[float, int], Injector]
    causes: frozenset[str]


FAULTS: Mapping[str, Fault] = {
    "slow rank": Fault(
        "share of the time throttled",
        (0.03, 0.06, 0.12, 0.22),
        lambda level, node: Quota(node=node, share=1 - level, throttled=level, least_slowdown=1.0),
        frozenset({"quota"}),
    ),
    "slow link": Fault(
        "share of its rate",
        (0.95, 0.85, 0.7, 0.5),
        lambda level, node: SlowLink(node=node, share=level, both=True),
        frozenset({"half_rate_link", "slow_link"}),
    ),
    "slow second rail": Fault(
        "share of its rate",
        (0.95, 0.85, 0.7, 0.5),
        lambda level, node: SlowLink(node=node, rail="eth1", share=level, both=True),
        frozenset({"half_rate_link", "slow_link", "dead_rail"}),
    ),
    "packet loss": Fault(
        "share of packets",
        (0.0003, 0.001, 0.003, 0.01),
        lambda level, node: Loss(node=node, share=level),
        frozenset({"loss"}),
    ),
    "slow storage of a node": Fault(
        "share of its rate",
        (0.95, 0.85, 0.7, 0.5),
        lambda level, node: Disks(mb_s=catalog.DISK_MB_S, slow=(node,), share=level),
        frozenset({"slow_storage"}),
    ),
    "lost element in an all-reduce": Fault(
        "one in so many calls",
        (3, 1),
        lambda level, node: Corruption(rank=node, every=int(level)),
        frozenset({"corruption"}),
    ),
    "wrong gradient": Fault(
        "one in so many passes",
        (150, 60, 20),
        lambda level, node: WrongGradient(rank=node, every=int(level)),
        frozenset({"corruption"}),
    ),
    "paused rank": Fault(
        "seconds",
        (2, 8, 20, 60),
        lambda level, node: Pause(rank=node, seconds=level),
        frozenset({"hung", "not_running"}),
    ),
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3, help="runs per fault and level")
    parser.add_argument("--healthy", type=int, default=1, help="healthy runs per round")
    parser.add_argument("--faults", nargs="*", choices=list(FAULTS), default=list(FAULTS))
    parser.add_argument("--at-most", type=int, default=10**6, help="this many runs now")
    parser.add_argument("--record", type=Path, default=RECORD)
    chosen = parser.parse_args(arguments)
    lines = recorded(chosen.record)
    if chosen.at_most and (reason := system.missing()) is not None:
        print(f"skipped: {reason}")
        return 4
    digest = facts.code_digest()
    for name, level, seed in wanted(chosen, lines):
        line = {"fault": name, "level": level, "seed": seed, "code_sha256": digest, **one(name, level, seed)}
        lines.append(line)
        chosen.record.parent.mkdir(parents=True, exist_ok=True)
        with chosen.record.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        print(f"{name} {level:g}, seed {seed}: {line['void'] or line['outcome']}", flush=True)
    print(tables(lines))
    return 0


def wanted(chosen: argparse.Namespace, lines: list[Line]) -> Iterator[tuple[str, float, int]]:
    """The runs that are still missing, round by round."""
    tried = [(line["fault"], line["level"], line["seed"]) for line in lines]
    done = {key for key in tried if tried.count(key) >= VOIDS_AT_MOST}
    done |= {(line["fault"], line["level"], line["seed"]) for line in lines if line["void"] is None}
    left = chosen.at_most
    for seed in range(FIRST_SEED, FIRST_SEED + chosen.runs):
        cells = [(NONE, 0.0, seed + 1000 * extra) for extra in range(chosen.healthy)]
        cells += [(name, level, seed) for name in chosen.faults for level in FAULTS[name].levels]
        for cell in cells:
            if cell not in done and left > 0:
                left -= 1
                yield cell


def one(name: str, level: float, seed: int) -> Line:
    """One run: detected (FAIL that names the fault), FAIL otherwise, INCONCLUSIVE, or missed (PASS)."""
    case, node = catalog.healthy(seed), seed % 2
    if name != NONE:
        added = FAULTS[name].inject(level, node)
        kept = () if isinstance(added, Disks) else case.inject
        case = dataclasses.replace(case, inject=(*kept, added))
    began, load = time.monotonic(), os.getloadavg()[0]
    try:
        outcome = case.run(seed)
    except (InjectorError, LabError) as error:
        return {"void": f"{type(error).__name__}: {error}"[:500], "wall_s": time.monotonic() - began}
    accused = outcome.culprits()
    causes = FAULTS[name].causes if name != NONE else frozenset()
    found = str(outcome.verdict)
    if found == "FAIL":
        found = "detected" if any(cause in causes for *_, cause in accused) else "FAIL, other cause"
    elif found == "PASS" and name != NONE:
        found = "missed"
    return {
        "void": None,
        "outcome": found,
        "accused": accused,
        "undecided": outcome.undecided(),
        "proofs": outcome.proofs,
        "figures": figures(outcome.result or {}) if name == NONE else {},
        "wall_s": outcome.wall_s,
        "load": load,
    }


def figures(result: Mapping[str, Any]) -> dict[str, tuple[float, float | None, float | None, str]]:
    """Value, its interval within the run, and unit of every check that measured one."""
    found = {}
    for check in result.get("checks", ()):
        measured = check["measured"]
        if measured and isinstance(measured["value"], int | float):
            low, high = measured["ci"] or (None, None)
            found[check["id"]] = (measured["value"], low, high, measured["unit"])
    return found


def tables(lines: list[Line]) -> str:
    """The severity curves, then the variance between healthy runs."""
    counted = [line for line in lines if line["void"] is None]
    parts = [
        "| fault | severity | runs | detected (95 %) | FAIL, other cause | INCONCLUSIVE | missed | void |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, fault in FAULTS.items():
        for level in fault.levels:
            mine = [line for line in counted if (line["fault"], line["level"]) == (name, level)]
            void = sum((line["fault"], line["level"]) == (name, level) for line in lines) - len(mine)
            if mine or void:
                parts.append(f"| {name} | {level:g} ({fault.unit}) | {curve(mine)} | {void} |")
    healthy = [line for line in counted if line["fault"] == NONE]
    loads = [line["load"] for line in counted]
    if healthy:
        bad = [
            sum(line["outcome"] == found for line in healthy)
            for found in ("FAIL, other cause", "INCONCLUSIVE")
        ]
        shares = [f"{count} ({bounded(count, len(healthy))})" for count in bad]
        parts += ["", f"healthy: {len(healthy)} runs, FAIL {shares[0]}, INCONCLUSIVE {shares[1]}"]
    parts += [f"load at the start of a run, median: {statistics.median(loads):.1f}"] if loads else []
    return "\n".join([*parts, "", *variance(healthy)])


def curve(lines: list[Line]) -> str:
    """Counts of the outcomes, with bounds of the probability of a detection."""
    outcomes = ("detected", "FAIL, other cause", "INCONCLUSIVE", "missed")
    counts = [sum(line["outcome"] == outcome for line in lines) for outcome in outcomes]
    first = f"{counts[0]} ({bounded(counts[0], len(lines))})"
    return " | ".join([str(len(lines)), first, *map(str, counts[1:])])


def bounded(count: int, runs: int) -> str:
    low, high = clopper_pearson(count, runs)
    return f"{low:.0%} .. {high:.0%}"


def variance(healthy: list[Line]) -> Iterator[str]:
    """Spread of each figure between runs, beside the half-width of its interval within a run."""
    names = sorted({name for line in healthy for name in line["figures"]})
    yield "| figure | runs | median | deviation between runs | half-width of the 95 % interval within a run |"
    yield "|---|---|---|---|---|"
    for name in names:
        rows = [line["figures"][name] for line in healthy if name in line["figures"]]
        values = [row[0] for row in rows]
        centre = statistics.median(values)
        if len(values) < 3 or centre < LEAST or not name.startswith(FIGURES):
            continue
        widths = [(row[2] - row[1]) / 2 for row in rows if row[1] is not None]
        within = f"{statistics.median(widths) / abs(centre):.1%}" if widths else "none"
        spread = statistics.stdev(values) / abs(centre)
        yield f"| {name} | {len(values)} | {centre:.4g} {rows[0][3]} | {spread:.1%} | {within} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
