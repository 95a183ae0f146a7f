"""Measurements of exactly one machine type, fabric, collective, shape and size, or why there are none (pure).

Nothing is scaled or interpolated: the bound itself depends on the number of nodes, and a size that is not in
the table may be on another side of the knee.
"""

import difflib
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from smoke_training.expected.tables import (
    AcceleratorRate,
    FabricMachine,
    FigureTables,
    Floor,
    Signature,
    SourcedFigure,
    TableCell,
)
from smoke_training.fabric import Fabric
from smoke_training.formulae.bounds import ClusterShape, Wires

LIKE = 0.10  # a measurement this close to a known fault's figure reads like that fault


@dataclass(frozen=True)
class NoFigure:
    """No figure, with the reason."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class FigureQuery:
    """The setting for which a figure is looked up."""

    instance_type: str
    fabric: Fabric
    collective: str
    shape: ClusterShape
    size_bytes: int


@dataclass(frozen=True)
class KnownFigures:
    """Measurements of sources on healthy stacks, the lowest first."""

    figures: tuple[SourcedFigure, ...]

    @property
    def lowest(self) -> SourcedFigure:
        """The slowest measurement of a healthy stack."""
        return self.figures[0]

    @property
    def typical(self) -> float:
        """GB/s: the median of the sources."""
        return statistics.median(figure.value for figure in self.figures)

    @property
    def source(self) -> str:
        """The source; of several, the lowest and their range."""
        first = f"{self.lowest.source.text} ({self.lowest.stack})"
        if len(self.figures) == 1:
            return first
        low, high = self.lowest.value, self.figures[-1].value
        return f"{len(self.figures)} measurements from {low:g} to {high:g} GB/s, the lowest: {first}"


def look_up(tables: FigureTables, question: FigureQuery) -> KnownFigures | NoFigure:
    """Return the figures for exactly this question."""
    machine = find_machine(tables, question.instance_type, question.fabric)
    if isinstance(machine, NoFigure):
        return machine
    near = [row for row in tables.figures if _same_place(row, question)]
    exact = [row for row in near if _same_cell(row, question)]
    if exact:
        return KnownFigures(tuple(sorted(exact, key=lambda row: row.value)))
    where = f"{question.instance_type} over {question.fabric}"
    if not near:
        why = machine.no_figure or "the table has no row for it"
        return NoFigure(f"no figure for {question.collective} on {where}: {why}")
    cells = sorted({(row.nodes, row.gpus_per_node, row.size_bytes) for row in near})
    by_shape: dict[tuple[int, int], list[str]] = {}
    for k, g, size in cells:
        by_shape.setdefault((k, g), []).append(_size(size))
    shapes = "; ".join(f"{k} nodes of {g} GPUs at {', '.join(sizes)}" for (k, g), sizes in by_shape.items())
    requested = (
        f"{question.shape.nodes} nodes of {question.shape.per_node} GPUs at {_size(question.size_bytes)}"
    )
    return NoFigure(
        f"no figure for {question.collective} on {where} with {requested}; figures exist for {shapes}"
    )


def find_machine(tables: FigureTables, instance_type: str, fabric: Fabric) -> FabricMachine | NoFigure:
    """Return the table's row of a machine type on a fabric, or the reason why there is none."""
    same = [row for row in tables.machines if row.instance_type == instance_type]
    found = [row for row in same if fabric in row.fabrics]
    if found:
        return found[0]
    if same:
        others = ", ".join(name for row in same for name in row.fabrics)
        return NoFigure(f"the table has {instance_type} over {others}, not over {fabric}")
    near = difflib.get_close_matches(instance_type, [row.instance_type for row in tables.machines], 1)
    hint = f"; the nearest name is {near[0]}" if near else ""
    return NoFigure(f"the table has no machine type {instance_type!r}{hint}")


def wires(machine: FabricMachine) -> Wires:
    """A machine's wires for `formulae.bounds`, in GB/s."""
    network = None if machine.network_gbit_s is None else machine.network_gbit_s / 8
    inside = machine.inside
    return Wires(
        network=network,
        ring=inside.ring_gb_s if inside else None,
        switch=inside.switch_gb_s if inside else None,
    )


def floor_of(tables: FigureTables, question: FigureQuery) -> Floor | None:
    """Return the highest liveness floor of published checks for exactly this question; None without one."""
    fitting = [row for row in tables.floors if _same_place(row, question) and _same_cell(row, question)]
    return max(fitting, key=lambda row: row.value, default=None)


def signature_of(tables: FigureTables, question: FigureQuery, value_gb_s: float) -> Signature | None:
    """Return the nearest known fault whose figure lies within 10 % of the measured one."""
    fitting = [
        row
        for row in tables.signatures
        if _same_place(row, question)
        and _same_cell(row, question)
        and abs(value_gb_s / row.value - 1) <= LIKE
    ]
    return min(fitting, key=lambda row: abs(value_gb_s / row.value - 1), default=None)


def sizes_of(tables: FigureTables, instance_type: str, fabric: Fabric, collective: str) -> Sequence[int]:
    """Return every size in bytes that has a figure, ascending: the sizes a sweep should reach."""
    return sorted(
        {
            row.size_bytes
            for row in tables.figures
            if (row.instance_type, row.fabric, row.collective) == (instance_type, fabric, collective)
        }
    )


def achievable(tables: FigureTables, device: str, dtype: str) -> AcceleratorRate | None:
    """The rate for a device as its driver names it, at a data type; None if none is published.

    None for a slice of a GPU as well ("NVIDIA H100 80GB HBM3 MIG 1g.10gb").
    """
    if " MIG " in device:
        return None
    found = [
        row
        for row in tables.accelerators
        if row.dtype == dtype and re.search(rf"(?<![\w-]){re.escape(row.name)}(?![\w])", device)
    ]
    return found[0] if len(found) == 1 else None


def _same_place(row: TableCell, question: FigureQuery) -> bool:
    wanted = (question.instance_type, question.fabric, question.collective)
    return (row.instance_type, row.fabric, row.collective) == wanted


def _same_cell(row: TableCell, question: FigureQuery) -> bool:
    wanted = (question.shape.nodes, question.shape.per_node, question.size_bytes)
    return (row.nodes, row.gpus_per_node, row.size_bytes) == wanted


def _size(count: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale and count % scale == 0:
            return f"{count // scale} {unit}"
    return f"{count} bytes"
