"""Plots of storage and of how busy the nodes were (pure)."""

import math
import statistics
from collections.abc import Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.storage import Storage
from smoke_training.evidence.system import System
from smoke_training.record.html.plot import Drawn, NothingToDrawError, Result, why_missing
from smoke_training.record.html.style import SERIES
from smoke_training.record.html.svg import (
    DASHES,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Drawing,
    Entry,
    Scale,
    axes,
    linear,
    rows,
)
from smoke_training.record.html.words import number

Values = Sequence[float | None]


def storage(result: Result, found: Evidence) -> Drawn:
    """Durable writes and cold reads of every target and node."""
    bars = [bar for target in found.all_of(Storage) for bar in _bars(target)]
    if not bars:
        raise NothingToDrawError(why_missing(result, "storage.write"))
    declared = [
        item["write_mb_s"] for item in result["plan"].get("storage") or () if item["write_mb_s"] is not None
    ]
    described = "Bars of median MB/s: " + "; ".join(f"{label} {number(rate)}" for label, rate, _ in bars)
    x = linear([0.0, *(rate for _, rate, _ in bars), *declared], LEFT + 120, WIDTH - RIGHT - 50, zero=True)
    frame, height = rows(x, [label for label, *_ in bars], TOP + 28)
    drawing = Drawing(described, height)
    frame.draw(drawing, "MB/s (10^6 bytes per second)")
    for index, (_, rate, order) in enumerate(bars):
        drawing.bar(x, (0.0, rate), frame.y(index), f"s{order}")
        drawing.text((x(rate) + 6, frame.y(index) + 4), number(rate, 3))
    for value in declared:
        drawing.line([(x(value), frame.y.start), (x(value), frame.y.end)], "limit", DASHES[1])
    entries = [Entry("write, fsync included", "s0"), Entry("read, cache dropped", "s1")]
    entries += [Entry("declared write rate", "limit", dash=DASHES[1])] if declared else []
    drawing.legend(entries, TOP + 2)
    held = "" if declared else " No write rate is declared, so nodes are compared with each other only."
    return Drawn(
        drawing,
        columns=("target", "median MB/s"),
        rows=tuple((label, number(rate)) for label, rate, _ in bars),
        caption=f"Medians over repetitions.{held}",
    )


def _bars(target: Storage) -> list[tuple[str, float, int]]:
    """(label, MB/s, series) of every node that has figures."""
    both = (("write", target.write_bytes, target.write), ("read", target.read_bytes, target.read))
    return [
        (f"{target.name} node {node} {what}", count / statistics.median(row) / 1e6, order)
        for order, (what, count, table) in enumerate(both)
        for node, row in zip(target.nodes, table, strict=True)
        if row
    ]


def nodes(_result: Result, found: Evidence) -> Drawn:
    """How busy the CPUs (and accelerators) of every node were while the run lasted."""
    lines = [line for line in found.all_of(System) if line.at_ms]
    if not lines:
        raise NothingToDrawError("No node sent samples of its counters.")
    start, end = min(line.at_ms[0] for line in lines), max(line.at_ms[-1] for line in lines)
    series = [item for line in lines for item in _series(line)]
    described = f"Utilisation in percent over {number((end - start) / 1000, 3)} s, one line per node."
    drawing = Drawing(described, 260.0)
    x = linear([0.0, max(1.0, (end - start) / 1000)], zero=True)
    y = Scale(0.0, 100.0, *drawing.span(24))
    axes(drawing, x, y, ("seconds since the first sample", "busy, %"))
    shown = series[:SERIES]
    for index, (_, times, values) in enumerate(shown):
        points = zip(times, values, strict=True)
        drawing.line(
            [(x((at - start) / 1000), y(value)) for at, value in points if value is not None],
            f"l{index}",
            DASHES[index],
        )
    drawing.legend([Entry(s[0], f"l{i}", dash=DASHES[i]) for i, s in enumerate(shown)], TOP + 4)
    more = f" {len(series) - len(shown)} more lines are in the table." if len(series) > len(shown) else ""
    return Drawn(
        drawing,
        columns=("counter", "mean, %", "highest, %"),
        rows=tuple(
            (label, number(_mean(values), 3), number(_most(values), 3)) for label, _, values in series
        ),
        caption=f"Sampled by every launcher; the same samples are MLflow's system metrics.{more}",
    )


def _series(line: System) -> list[tuple[str, tuple[int, ...], Values]]:
    """CPU of one node, and the mean of its accelerators where it has any."""
    found = [(f"node {line.node} CPU", line.at_ms, _column(line, "cpu_utilization_percentage"))]
    gpus = [
        name for name in line.names if name.startswith("gpu_") and name.endswith("_utilization_percentage")
    ]
    if gpus:
        columns = zip(*(_column(line, name) for name in gpus), strict=True)
        found.append((f"node {line.node} GPUs, mean", line.at_ms, [_mean(values) for values in columns]))
    return found


def _column(line: System, name: str) -> Values:
    if name not in line.names:
        return [None] * len(line.at_ms)
    index = line.names.index(name)
    return [values[index] for values in line.values]


def _mean(values: Values) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _most(values: Values) -> float | None:
    return max((value for value in values if value is not None), default=None)
