"""Plots of storage and of the nodes' utilization (pure)."""

import math
import statistics
from collections.abc import Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.storage import StorageTimes
from smoke_training.evidence.world import System
from smoke_training.record.formatting import number
from smoke_training.record.html.plot import Drawn, NothingToDrawError, Result, why_missing
from smoke_training.record.html.style import SERIES
from smoke_training.record.html.svg import DASHES, LEFT, RIGHT, WIDTH, Drawing, Scale, axes, linear, rows

Values = Sequence[float | None]


def storage(result: Result, found: Evidence) -> Drawn:
    """Durable writes and cold reads of every target and node."""
    bars = [bar for target in found.all_of(StorageTimes) for bar in _bars(target)]
    if not bars:
        raise NothingToDrawError(why_missing(result, "storage.write"))
    declared = [
        item["write_mb_s"] for item in result["plan"].get("storage") or () if item["write_mb_s"] is not None
    ]
    described = "Bars of median MB/s: " + "; ".join(f"{label} {number(rate)}" for label, rate, _ in bars)
    x = linear([0.0, *(rate for _, rate, _ in bars), *declared], LEFT + 120, WIDTH - RIGHT - 50, zero=True)
    names = [label for label, *_ in bars]
    drawing, y = rows(described, x, names, "MB/s (10^6 bytes per second)")
    for index, (_, rate, order) in enumerate(bars):
        label = ("write, fsync included", "read, cache dropped")[order]
        drawing.bar(x, (0.0, rate), y(index), f"s{order}", label)
        drawing.text((x(rate) + 6, y(index) + 4), number(rate, 3))
    for value in declared:
        ends = [(x(value), y.start), (x(value), y.end)]
        drawing.line(ends, "limit", DASHES[1], "declared write rate")
    held = "" if declared else " No write rate is declared, so nodes are compared with each other only."
    return Drawn(
        drawing,
        columns=("target", "median MB/s"),
        rows=tuple((label, number(rate)) for label, rate, _ in bars),
        caption=f"Medians over repetitions.{held}",
    )


def _bars(target: StorageTimes) -> list[tuple[str, float, int]]:
    """(label, MB/s, series) of every node that has figures."""
    both = (("write", target.write_bytes, target.write), ("read", target.read_bytes, target.read))
    return [
        (f"{target.name} node {node} {what}", count / statistics.median(row) / 1e6, order)
        for order, (what, count, table) in enumerate(both)
        for node, row in zip(target.nodes, table, strict=True)
        if row
    ]


def nodes(_result: Result, found: Evidence) -> Drawn:
    """Utilization of every node's CPUs (and accelerators) during the run."""
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
    for index, (label, times, values) in enumerate(shown):
        points = zip(times, values, strict=True)
        known = [(x((at - start) / 1000), y(value)) for at, value in points if value is not None]
        drawing.line(known, f"l{index}", DASHES[index], label)
    more = f" {len(series) - len(shown)} more lines are in the table." if len(series) > len(shown) else ""
    return Drawn(
        drawing,
        columns=("counter", "mean, %", "highest, %"),
        rows=tuple(
            (
                label,
                number(_mean(values), 3),
                number(max((v for v in values if v is not None), default=None), 3),
            )
            for label, _, values in series
        ),
        caption=f"Sampled by every launcher; the same samples are MLflow's system metrics.{more}",
    )


def _series(line: System) -> list[tuple[str, tuple[int, ...], Values]]:
    """CPU of one node, and the mean of its accelerators where it has any."""
    columns = dict(zip(line.names, zip(*line.values, strict=True), strict=True))
    busy = "_utilization_percentage"
    gpus = [values for name, values in columns.items() if name.startswith("gpu_") and name.endswith(busy)]
    means = [_mean(values) for values in zip(*gpus, strict=True)]
    found = {"CPU": columns.get(f"cpu{busy}"), "GPUs, mean": means}
    return [(f"node {line.node} {what}", line.at_ms, values) for what, values in found.items() if values]


def _mean(values: Values) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
