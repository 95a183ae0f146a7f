"""Plots of collectives and links (pure)."""

import math
import statistics

from smoke_training.evidence import Evidence
from smoke_training.evidence.fabric import Collective
from smoke_training.evidence.links import PairsSkipped, Tournament
from smoke_training.evidence.world import World
from smoke_training.formulae.bandwidth import COLLECTIVES, busbw_gb_s
from smoke_training.record.formatting import number, size, with_unit
from smoke_training.record.html.plot import Drawn, NothingToDrawError, Result, check_of, why_missing
from smoke_training.record.html.svg import DASHES, LEFT, MARKERS, TOP, Drawing, axes, logarithmic

Curve = list[tuple[int, float]]
_NAMES = {"baseline": "own last run"}


def bandwidth(result: Result, found: Evidence) -> Drawn:
    """Bus bandwidth over message size, one line per collective, with bound, floor and other references."""
    curves = _curves(found)
    if not curves:
        raise NothingToDrawError(why_missing(result, "collective.all_reduce"))
    held, absent = _references(result)
    rates = [rate for curve in curves.values() for _, rate in curve]
    described = f"Log-log plot of {', '.join(curves)}: GB/s over bytes; highest {number(max(rates))} GB/s."
    drawing = Drawing(described, 350.0)
    x = logarithmic((s for curve in curves.values() for s, _ in curve), base=2.0)
    y = logarithmic([*rates, *(value for _, value, _ in held)], *drawing.span(42))
    axes(drawing, x, y, ("message size (whole array)", "bus bandwidth, GB/s"), (size, number))
    for index, (name, curve) in enumerate(curves.items()):
        drawing.line([(x(s), y(rate)) for s, rate in curve], f"l{index}", DASHES[index], name)
        for s, rate in curve:
            tip = f"{name}, {size(s)}: {number(rate)} GB/s"
            drawing.marker(MARKERS[index], (x(s), y(rate)), f"s{index}", tip, name)
    for label, value, css in held:
        ends, dash = [(x.start, y(value)), (x.end, y(value))], DASHES[1 if css == "bound" else 2]
        drawing.line(ends, css, dash, f"all_reduce {label}: {number(value)} GB/s")
    return Drawn(
        drawing,
        columns=("collective", "size", "busbw, GB/s"),
        rows=tuple((name, size(s), number(rate)) for name, curve in curves.items() for s, rate in curve),
        caption=f"Median over repetitions, time = maximum over ranks. {absent}",
    )


def _curves(found: Evidence) -> dict[str, Curve]:
    """(size, median bus bandwidth) of every collective that was swept; the last sweep of a name counts."""
    world = found.of(World)
    curves: dict[str, Curve] = {}
    for sweep in found.all_of(Collective):
        if world is None or sweep.name not in COLLECTIVES:
            continue
        points = [(s, statistics.median(t)) for s, t in zip(sweep.sizes, sweep.seconds, strict=True) if t]
        rates = [(s, busbw_gb_s(s, t, len(world.ranks), sweep.name)) for s, t in points]
        if known := [(s, rate) for s, rate in rates if rate is not None]:
            curves[sweep.name] = known
    return curves


def _references(result: Result) -> tuple[list[tuple[str, float, str]], str]:
    """(label, GB/s, css) of an all-reduce's reference lines, and reasons for missing ones."""
    check = check_of(result, "collective.all_reduce")
    lines, absent = [], []
    for item in check["references"] if check else ():
        name = _NAMES.get(item["kind"], item["kind"])
        if item["value"] is None:
            absent.append(f"No {name}: {item['reason'].rstrip('.')}.")
        elif item["value"] > 0:
            lines.append((name, float(item["value"]), "bound" if name == "bound" else "limit"))
    floor = check["expected"]["floor"] if check and check["expected"] else None
    return lines + ([("floor", float(floor), "limit")] if floor else []), " ".join(absent)


def links(result: Result, found: Evidence) -> Drawn:
    """Rate of every pair of nodes, both directions, as a heat map."""
    skipped = found.of(PairsSkipped)
    match = next((item for item in reversed(found.all_of(Tournament)) if item.phase == "pairs"), None)
    if match is None and skipped is not None:
        raise NothingToDrawError(f"Nothing between nodes to measure: {skipped.reason}.")
    if match is None:
        raise NothingToDrawError(why_missing(result, "fabric.links"))
    nodes = match.nodes
    rates = {(c.sender, c.receiver): statistics.median(c.gbit_s) for c in match.cells if c.gbit_s}
    if not rates:
        raise NothingToDrawError("No transfer between nodes completed.")
    slowest = min(rates, key=lambda pair: rates[pair])
    least = f"node {slowest[0]} to node {slowest[1]} with {number(rates[slowest])} Gb/s"
    described = f"Heat map, sender by receiver, Gb/s; slowest is {least}."
    side = min(56.0, 560.0 / len(nodes))
    drawing = Drawing(described, TOP + 40 + side * len(nodes) + 30)
    check = check_of(result, "fabric.links")
    # Nodes ("1") and links ("0-2") that the verdict names.
    accused = {c["id"] for c in check["culprits"] if c["kind"] in ("link", "node")} if check else set()
    _heat_map(drawing, nodes, rates, side, accused)
    ordered = sorted(rates.items(), key=lambda item: item[1])
    declared = result["plan"].get("network_gbit_s") or result["plan"].get("rail_gbit_s")
    held = f"Declared: {with_unit(declared, 'Gb/s')} per node." if declared else "No rate is declared."
    return Drawn(
        drawing,
        columns=("sender → receiver", "Gb/s"),
        rows=tuple((f"{a} → {b}", number(rate)) for (a, b), rate in ordered),
        caption=f"Median over the visits of each pair. {held}",
    )


def _heat_map(
    drawing: Drawing,
    nodes: tuple[int, ...],
    rates: dict[tuple[int, int], float],
    side: float,
    accused: set[str],
) -> None:
    """Draw figures by lightness of one hue, readable in grey, on paper and for the colour-blind."""
    left, top = LEFT + 32, TOP + 40.0
    drawing.box("empty", (left, top), (side * len(nodes), side * len(nodes)))
    most = max(rates.values())
    drawing.text((left, TOP + 6), "sending node down, receiving node across; stronger colour is faster")
    every = math.ceil(14 / side)  # of the nodes' names, without overlap
    for row, sender in enumerate(nodes):
        middle = side * (row + 0.5)
        if row % every == 0:
            drawing.text((left - 8, top + middle + 4), f"node {sender}", "soft", "end")
            drawing.text((left + middle, top - 8), str(sender), "soft", "middle")
        for column, receiver in enumerate(nodes):
            rate, x, y = rates.get((sender, receiver)), left + side * column, top + side * row
            if rate is None:
                continue
            gap = 0.5 if side >= 8 else 0.0
            extent = (side - 2 * gap, side - 2 * gap)
            drawing.box("s0", (x + gap, y + gap), extent, opacity=0.06 + 0.44 * rate / most)
            if accused & {f"{sender}-{receiver}", f"{receiver}-{sender}", str(sender), str(receiver)}:
                drawing.box("limit", (x + 1, y + 1), (max(1.0, side - 2), max(1.0, side - 2)))
            if side >= 30:
                drawing.text((x + side / 2, y + side / 2 + 4), number(rate, 3), "", "middle")
    note = "a frame marks accused links" if accused else "no link is accused"
    drawing.text((left, top + side * len(nodes) + 20), f"highest {number(most)} Gb/s; {note}", "soft")
