"""Plots of the training step and of losses (pure)."""

import math
import statistics

from smoke_training.evidence import Evidence
from smoke_training.evidence.training import Decomposition, Parity
from smoke_training.record.formatting import interval, number, seconds
from smoke_training.record.html.plot import Drawn, NothingToDrawError, Result, check_of, why_missing
from smoke_training.record.html.svg import Drawing, axes, linear, rows

MOST_RANKS = 64  # in a plot; the table has all
PARTS = ("data", "compute", "exposed", "checkpoint", "other")
_PART_NAMES = {"data": "waiting for data", "exposed": "exposed communication"}


def stragglers(result: Result, _found: Evidence) -> Drawn:
    """Slowdown of every rank with its interval, and the zone in which either verdict is acceptable."""
    check = check_of(result, "training.straggler")
    every_rank = check["measured"]["detail"].get("ranks") if check and check["measured"] else None
    if check is None or not every_rank:
        raise NothingToDrawError(why_missing(result, "training.straggler"))
    slowest = sorted(every_rank, key=lambda row: -row["slowdown"])[:MOST_RANKS]
    ranks, worst = sorted(slowest, key=lambda row: row["rank"]), slowest[0]
    zone = check["zone"]
    accused = {culprit["id"] for culprit in check["culprits"] if culprit["kind"] == "rank"}
    described = (
        f"Slowdown per rank with 95 % intervals; slowest is rank {worst['rank']} with "
        f"{number(worst['slowdown'])}. Indifference zone {interval(zone)}."
    )
    ends = [bound for row in ranks for bound in row["ci95"] or () if bound is not None]
    x = linear([1.0, *(zone or ()), *ends, *(r["slowdown"] for r in ranks)])
    label = "slowdown of compute, factor (1 = like its peers)"
    drawing, y = rows(described, x, [f"rank {row['rank']}" for row in ranks], label)
    if zone:
        extent = (x(zone[1]) - x(zone[0]), y.start - y.end)
        drawing.box("zone", (x(zone[0]), y.end), extent, 0.6, f"indifference zone {interval(zone)}")
    for index, row in enumerate(ranks):
        bad, at = str(row["rank"]) in accused, y(index)
        low, high = row["ci95"] or (None, None)
        mark, css, line = ("diamond", "bad", "limit") if bad else ("circle", "s0", "l0")
        label = f"{'accused ' if bad else ''}rank with 95 % interval"
        ends = [x.low if low is None else low, x.high if high is None else high]  # an open end: to the edge
        drawing.line([(x(end), at) for end in ends], line, label=label)
        tip = f"rank {row['rank']}: {number(row['slowdown'])}x, 95 % interval {interval(row['ci95'])}"
        drawing.marker(mark, (x(row["slowdown"]), at), css, tip, label)
    return Drawn(
        drawing,
        columns=("rank", "slowdown, factor", "95 % interval"),
        rows=tuple((str(r["rank"]), number(r["slowdown"]), interval(r["ci95"])) for r in every_rank),
        caption="Ratio of compute time before any collective to the median of the other ranks. Inside the "
        f"zone either verdict is acceptable.{_cut(len(every_rank), 'slowest ranks')}",
    )


def _cut(count: int, which: str) -> str:
    return f" Drawn are the {MOST_RANKS} {which} of {count}." if count > MOST_RANKS else ""


def decomposition(result: Result, found: Evidence) -> Drawn:
    """Parts of a step's time on every rank, stacked."""
    split = found.of(Decomposition)
    if split is None:
        raise NothingToDrawError(why_missing(result, "training.decomposition"))
    table = {part: [statistics.fmean(row) for row in getattr(split, part)] for part in PARTS}
    totals = [statistics.fmean(row) for row in split.total]
    described = (
        f"Stacked bars, one per rank: {', '.join(map(_named, PARTS))}; longest step {seconds(max(totals))}."
    )
    shown = sorted(sorted(range(len(totals)), key=lambda rank: -totals[rank])[:MOST_RANKS])
    sums = [math.fsum(max(table[part][rank], 0.0) for part in PARTS) for rank in shown]
    x = linear([0.0, *sums, *totals], zero=True)
    names = [f"rank {rank}" for rank in shown]
    drawing, y = rows(described, x, names, "time per step, mean over steps", seconds)
    for row, rank in enumerate(shown):
        at = 0.0
        for order, part in enumerate(PARTS):
            end = at + max(table[part][rank], 0.0)
            drawing.bar(x, (at, end), y(row), f"s{order}", _named(part))
            at = end
        edge = x(totals[rank])
        drawing.line([(edge, y(row) - 11), (edge, y(row) + 11)], "bound", label="whole step")
    return Drawn(
        drawing,
        columns=("rank", *map(_named, PARTS), "whole step"),
        rows=tuple(
            (str(rank), *(seconds(table[part][rank]) for part in PARTS), seconds(total))
            for rank, total in enumerate(totals)
        ),
        caption="Means over the steps of a rank; the parts must add up to the whole step within 2 %."
        + _cut(len(totals), "longest steps"),
    )


def _named(part: str) -> str:
    return _PART_NAMES.get(part, part)


def losses(result: Result, found: Evidence) -> Drawn:
    """Losses of many ranks and of one, with the same global batch."""
    parity = found.of(Parity)
    if parity is None or not parity.many or not parity.one:
        raise NothingToDrawError(why_missing(result, "training.loss_parity"))
    known = [value for value in (*parity.many, *parity.one) if math.isfinite(value)]
    if not known:
        raise NothingToDrawError("No loss is a finite number.")
    difference = _difference(result)
    described = f"Two curves over {len(parity.many)} steps that should cover each other. {difference}"
    drawing = Drawing(described, 270.0)
    x = linear([1.0, float(len(parity.many))])
    y = linear(known, *drawing.span(24))
    axes(drawing, x, y, ("optimizer step", "loss"))
    alone, together = (
        [(x(float(step)), y(value)) for step, value in enumerate(values, 1) if math.isfinite(value)]
        for values in (parity.one, parity.many)
    )
    drawing.line(alone, "l0", label="one rank")
    for at in together:
        drawing.marker("ring", at, "s1", label="many ranks")
    pairs = enumerate(zip(parity.many, parity.one, strict=False), 1)
    return Drawn(
        drawing,
        columns=("step", "many ranks", "one rank"),
        rows=tuple((str(step), number(a, 8), number(b, 8)) for step, (a, b) in pairs),
        caption=f"{parity.dtype} losses with the same global batch. {difference}",
    )


def _difference(result: Result) -> str:
    check = check_of(result, "training.loss_parity")
    if check is None or check["measured"] is None or check["measured"]["value"] is None:
        return "The largest relative difference is unknown."
    limit = check["expected"]["floor"] if check["expected"] else None
    held = f", tolerated {number(limit)}" if limit is not None else ""
    return f"Largest relative difference {number(check['measured']['value'])}{held}."
