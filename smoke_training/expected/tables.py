"""The rows of `figures.toml` beside this module, read from the package's folder or zip.

Every row names its source by key. A run (`figure`, `floor`, `signature`) says `at` which machine types, over
which fabric and with how many nodes it was measured, and has GB/s by size per collective:
`all_reduce = { "1 GiB" = 75.34 }`. Every size and machine type becomes a cell.
"""

import datetime
import importlib.resources
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from smoke_training.fabric import Fabric
from smoke_training.formulae.bandwidth import COLLECTIVES
from smoke_training.reader import decode

FILE = "figures.toml"
_SHIFTS = {"KiB": 10, "MiB": 20, "GiB": 30}


class TableError(ValueError):
    """An unreadable table; the message names file and row."""


@dataclass(frozen=True, kw_only=True)
class FigureSource:
    """Origin of a row. `date` is the source's own unless `dated` says `when read`."""

    text: str
    date: datetime.date
    dated: str = "by source"


@dataclass(frozen=True, kw_only=True)
class Inside:
    """GB/s of bus bandwidth of one node by itself: in a ring, and inside the switch if it has one."""

    ring_gb_s: float
    switch_gb_s: float | None = None
    source: FigureSource


@dataclass(frozen=True, kw_only=True)
class FabricMachine:
    """Network hardware of one node of a type on some fabrics.

    `network_gbit_s` sums the NICs that carry training traffic, in one direction; None is unknown. `gpudirect`
    is the source for NCCL's use of GPUDirect RDMA. `like` is the hardware class, a row of this table, whose
    figures hold where the type has none; `no_figure` is the reason why it has none of its own.
    """

    instance_type: str
    fabrics: tuple[Fabric, ...]
    gpus: int
    source: FigureSource
    gpu: str | None = None
    nics: int | None = None
    network_gbit_s: float | None = None
    gpudirect: FigureSource | None = None
    inside: Inside | None = None
    like: str | None = None
    no_figure: str | None = None
    disagreements: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TableCell:
    """A value in GB/s of bus bandwidth with its exact setting; it is valid for no other."""

    instance_type: str
    fabric: Fabric
    collective: str
    nodes: int
    gpus_per_node: int
    size_bytes: int
    value: float
    source: FigureSource
    disagreements: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SourcedFigure(TableCell):
    """A measurement of a source: `kind` published, derived or declared.

    `algorithm` limits it to runs whose log names that family ("collnet": reduction in the network's
    switches), `tuned` to runs with more channels than NCCL takes by itself. `spread` is the largest relative
    difference of the same run's in-place half. `superseded` is why it is no limit for current stacks.
    """

    stack: str
    kind: str = "published"
    algorithm: str | None = None
    tuned: bool = False
    spread: float | None = None
    superseded: str | None = None


@dataclass(frozen=True, kw_only=True)
class Floor(TableCell):
    """Limit of a published check: a liveness threshold, never an expectation."""

    stack: str


@dataclass(frozen=True, kw_only=True)
class Signature(TableCell):
    """A source's measurement under a known fault, of a cause class of `smoke_training.model.Cause`."""

    cause: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class AcceleratorRate:
    """TFLOPS (dense) of matrix products, published for devices whose name contains `name` as whole words."""

    name: str
    dtype: str
    tflops: float
    shape: str | None = None
    source: FigureSource


@dataclass(frozen=True, kw_only=True)
class FigureTables:
    """All rows."""

    machines: tuple[FabricMachine, ...]
    figures: tuple[SourcedFigure, ...]
    floors: tuple[Floor, ...]
    signatures: tuple[Signature, ...]
    accelerators: tuple[AcceleratorRate, ...]


Row = dict[str, Any]
Kind = TypeVar("Kind")


@cache
def shipped() -> FigureTables:
    """The tables of this package; TableError when the file is malformed."""
    return parse(importlib.resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8"))


def parse(text: str) -> FigureTables:
    """Tables from a TOML text; TableError names file, kind of row, its number and the fault."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{FILE}: {error}") from error
    return FigureTables(
        machines=_rows(content, "machine", FabricMachine, _machines),
        figures=_rows(content, "figure", SourcedFigure, _cells),
        floors=_rows(content, "floor", Floor, _cells),
        signatures=_rows(content, "signature", Signature, _cells),
        accelerators=_rows(content, "accelerator", AcceleratorRate, lambda row, _: [row]),
    )


def _rows(
    content: Row, kind: str, model: type[Kind], expand: Callable[[Row, Row], Iterable[Row]]
) -> tuple[Kind, ...]:
    found: list[Kind] = []
    for number, entry in enumerate(content.get(kind, []), 1):
        try:
            row = _sourced(entry, content)
            found += [decode(model, each) for each in expand(row, content)]
        except (KeyError, TypeError, ValueError) as error:
            raise TableError(f"{FILE} {kind} {number}: {error}") from error
    return tuple(found)


def _sourced(row: Row, content: Row) -> Row:
    """A copy of a row with its source in place of the source's key."""
    return row | ({"source": content["sources"][row["source"]]} if "source" in row else {})


def _machines(row: Row, content: Row) -> Iterator[Row]:
    if "gpudirect" in row:
        row["gpudirect"] = content["sources"][row["gpudirect"]]
    if "inside" in row:
        row["inside"] = _sourced(content["inside"][row["inside"]], content)
    for name in row.pop("instance_types"):
        yield {**row, "instance_type": name}


def _cells(row: Row, content: Row) -> Iterator[Row]:
    """One row per collective, size and machine type of a run."""
    gpus = {name: machine["gpus"] for machine in content["machine"] for name in machine["instance_types"]}
    sweeps = {name: row.pop(name) for name in COLLECTIVES if name in row}
    if not sweeps:
        raise TypeError("no collective with its figures by size")
    place = dict(row.pop("at"))
    names = place.pop("instance_types")
    for collective, sizes in sweeps.items():
        for size, value in sizes.items():
            number, _, unit = size.partition(" ")
            cell = {**row, **place, "collective": collective, "value": value}
            cell["size_bytes"] = int(number) << _SHIFTS[unit]
            for name in names:
                yield {**cell, "instance_type": name, "gpus_per_node": gpus[name]}
