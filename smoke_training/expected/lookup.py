"""Measurements of exactly one machine type, fabric, collective, shape and size, or why there are none (pure).

Nothing is scaled or interpolated: the bound itself depends on the number of nodes, and a size that is not in
the table may be on another side of the knee.
"""

import difflib
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

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
from smoke_training.model import counted

Cell = TypeVar("Cell", bound=TableCell)

MIG = " MIG "  # in the driver's name of a slice: it has a part of the GPU, and neighbours
LIKE = 0.10  # a measurement this close to a known fault's figure reads like that fault


@dataclass(frozen=True)
class NoFigure:
    """No figure, with the reason."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class FigureQuery:
    """The setting for which a figure is looked up; `collnet`: the network's switches reduced (SHARP)."""

    instance_type: str
    fabric: Fabric
    collective: str
    shape: ClusterShape
    size_bytes: int
    collnet: bool = False
    tuned: bool | None = False  # more channels than NCCL's default; None: not known, figures of both


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
    def passing(self) -> SourcedFigure:
        """The slowest, where some have more channels than NCCL's default, of these."""
        return next((figure for figure in self.figures if figure.tuned), self.lowest)

    @property
    def source(self) -> str:
        """The source; of several, the lowest and their range."""
        first = f"{self.lowest.source.text} ({self.lowest.instance_type}, {self.lowest.stack})"
        if len(self.figures) == 1:
            return first
        low, high = self.lowest.value, self.figures[-1].value
        more = "" if self.passing is self.lowest else f"; {self.passing.value:g} by {self.passing.stack}"
        return f"{len(self.figures)} measurements from {low:g} to {high:g} GB/s, the lowest: {first}{more}"


def look_up(tables: FigureTables, question: FigureQuery) -> KnownFigures | NoFigure:
    """Return the figures for exactly this question."""
    machine = find_machine(tables, question.instance_type, question.fabric)
    if isinstance(machine, NoFigure):
        return machine
    for known in _lineage(tables, machine):
        exact = _fitting(tables.figures, question, known)
        special = [row for row in exact if row.algorithm]
        chosen = special if question.collnet and special else [row for row in exact if not row.algorithm]
        chosen = [row for row in chosen if not row.superseded] or chosen
        chosen = [row for row in chosen if question.tuned in (None, row.tuned)] or chosen
        if chosen:
            return KnownFigures(tuple(sorted(chosen, key=lambda row: row.value)))
    near = [row for row in tables.figures if _same_place(row, question, machine)]
    where = f"{question.instance_type} over {question.fabric}"
    if not near:
        why = machine.no_figure or "the table has no row for it"
        return NoFigure(f"no figure for {question.collective} on {where}: {why}")
    cells = sorted({(row.nodes, row.gpus_per_node, row.size_bytes) for row in near})
    by_shape: dict[tuple[int, int], list[str]] = {}
    for k, g, size in cells:
        by_shape.setdefault((k, g), []).append(_size(size))
    shapes = "; ".join(
        f"{counted(k, 'node')} of {counted(g, 'GPU')} at {', '.join(sizes)}"
        for (k, g), sizes in by_shape.items()
    )
    nodes, gpus = counted(question.shape.nodes, "node"), counted(question.shape.per_node, "GPU")
    asked = f"{question.collective} on {where} with {nodes} of {gpus} at {_size(question.size_bytes)}"
    return NoFigure(f"no figure for {asked}; figures exist for {shapes}")


def find_machine(tables: FigureTables, instance_type: str, fabric: Fabric) -> FabricMachine | NoFigure:
    """Return the table's row of a machine type on a fabric, or the reason why there is none."""
    same = rows_of(tables, instance_type)
    found = [row for row in same if fabric in row.fabrics]
    if found:
        return found[0]
    if same:
        others = ", ".join(name for row in same for name in row.fabrics)
        return NoFigure(f"the table has {instance_type} over {others}, not over {fabric}")
    near = nearest(tables, instance_type)
    hint = f"; the nearest name is {', then '.join(near)}" if near else ""
    return NoFigure(f"the table has no machine type {instance_type!r}{hint}")


def rows_of(tables: FigureTables, name: str) -> list[FabricMachine]:
    """Return the rows of a machine type, whose name is read in any case."""
    return [row for row in tables.machines if row.instance_type.lower() == name.lower()]


def nearest(tables: FigureTables, name: str) -> list[str]:
    """Return at most three known names: those that contain this one, else those that are spelled alike."""
    known = {row.instance_type.lower(): row.instance_type for row in tables.machines}
    parts = [low for low in sorted(known) if name and name.lower() in low]
    return [known[low] for low in parts[:3] or difflib.get_close_matches(name.lower(), known)]


def known_of(tables: FigureTables, instance_type: str) -> tuple[list[FabricMachine], list[TableCell]]:
    """Return the rows of a machine type and of its hardware classes; none for an unknown name."""
    own = rows_of(tables, instance_type)
    names = {known.instance_type for row in own for known in _lineage(tables, row)}
    cells: list[TableCell] = [*tables.figures, *tables.floors, *tables.signatures]
    return (
        [row for row in tables.machines if row.instance_type in names],
        [cell for cell in cells if cell.instance_type in names],
    )


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
    return max(_cells(tables, tables.floors, question), key=lambda row: row.value, default=None)


def signature_of(tables: FigureTables, question: FigureQuery, value_gb_s: float) -> Signature | None:
    """Return the nearest known fault whose figure lies within 10 % of the measured one."""
    distance = {row: abs(value_gb_s / row.value - 1) for row in _cells(tables, tables.signatures, question)}
    return min(
        (row for row in distance if distance[row] <= LIKE), key=lambda row: distance[row], default=None
    )


def sizes_of(tables: FigureTables, instance_type: str, fabric: Fabric, collective: str) -> Sequence[int]:
    """Return every size in bytes that has a figure, ascending: the sizes a sweep should reach."""
    machine = find_machine(tables, instance_type, fabric)
    names = (
        set() if isinstance(machine, NoFigure) else {row.instance_type for row in _lineage(tables, machine)}
    )
    return sorted(
        {
            row.size_bytes
            for row in tables.figures
            if row.instance_type in names
            and row.collective == collective
            and (row.fabric is fabric or row.nodes == 1)
        }
    )


def achievable(tables: FigureTables, device: str, dtype: str) -> AcceleratorRate | None:
    """The rate for a device as its driver names it, at a data type; None if none is published."""
    found = [row for row in tables.accelerators if row.dtype == dtype and is_model(device, row.name)]
    return found[0] if len(found) == 1 else None


def is_model(device: str, model: str) -> bool:
    """Report whether the driver's name of a device is that of a model, as a whole module.

    No slice of it ("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), and no card of a class of its own, with less power
    and another NVLink than the module ("NVIDIA H200 NVL", "A100-PCIE-40GB"; 600 W instead of 700 W).
    """
    other = r"\w|.*(\bNVL\b|\bPCIe\b| MIG )"
    return bool(re.search(rf"(?<![\w-]){re.escape(model)}(?!{other})", device, re.IGNORECASE))


def _lineage(tables: FigureTables, machine: FabricMachine) -> Iterable[FabricMachine]:
    """Yield a machine type and the hardware classes that it belongs to, the nearest first."""
    found: FabricMachine | None = machine
    while found is not None:
        yield found
        like = found.like
        found = next((row for row in tables.machines if row.instance_type == like), None) if like else None


def _cells(tables: FigureTables, rows: Sequence[Cell], question: FigureQuery) -> Sequence[Cell]:
    """Return the rows of exactly this question, those of a hardware class where the type has none."""
    machine = find_machine(tables, question.instance_type, question.fabric)
    if isinstance(machine, NoFigure):
        return []
    found = (_fitting(rows, question, known) for known in _lineage(tables, machine))
    return next((rows for rows in found if rows), [])


def _fitting(rows: Sequence[Cell], question: FigureQuery, machine: FabricMachine) -> list[Cell]:
    wanted = (question.shape.nodes, question.shape.per_node, question.size_bytes)
    return [
        row
        for row in rows
        if _same_place(row, question, machine) and (row.nodes, row.gpus_per_node, row.size_bytes) == wanted
    ]


def _same_place(row: TableCell, question: FigureQuery, machine: FabricMachine) -> bool:
    """Report whether a row is of this machine, collective and fabric, which takes no part in one node."""
    same = (row.instance_type, row.collective) == (machine.instance_type, question.collective)
    return same and (row.fabric is question.fabric or row.nodes == question.shape.nodes == 1)


def _size(count: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale and count % scale == 0:
            return f"{count // scale} {unit}"
    return f"{count} bytes"
