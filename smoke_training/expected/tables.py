"""The rows of the tables beside this module, read from whatever the package lies in: a folder or a zip.

A file holds `[sources.<key>]` (`text`, `date`, optionally `dated`), `[[machine]]` entries and runs
(`[[figure]]`, `[[floor]]`, `[[signature]]`), each with a source. A run has one table per collective, with
GB/s by size: `"1 GiB" = 75.34`, or with remarks `"1 GiB" = { value = 75.34, disagreements = ["..."] }`. Every
size and machine type becomes a row, with the GPUs per node of its machine.
"""

import datetime
import importlib.resources
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeVar

CLOUDS = ("aws", "azure", "gcp")
UNIT = "GB/s"
_SHIFTS = {"KiB": 10, "MiB": 20, "GiB": 30}


class TableError(ValueError):
    """A table that cannot be read; says which file and row."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a row comes from. `date` is the source's own unless `dated` says `when read`."""

    text: str
    date: datetime.date
    dated: str = "by source"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What one node of a type has on some fabrics. Gb/s in one direction, GB/s of bus bandwidth inside.

    `network_gbit_s` sums the NICs that carry training traffic; None is unknown. `no_figure` says why the type
    has no figure.
    """

    instance_type: str
    fabrics: tuple[str, ...]
    gpus: int
    source: Source
    nics: int | None = None
    network_gbit_s: float | None = None
    ring_gb_s: float | None = None
    switch_gb_s: float | None = None
    inside_source: Source | None = None
    no_figure: str | None = None
    disagreements: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A value in GB/s of bus bandwidth with all that it depends on; it holds for nothing else."""

    instance_type: str
    fabric: str
    collective: str
    nodes: int
    gpus_per_node: int
    size_bytes: int
    value: float
    source: Source


@dataclass(frozen=True, kw_only=True)
class Figure(Cell):
    """GB/s of bus bandwidth that a source measured: `kind` published, derived or declared."""

    stack: str
    kind: str = "published"
    unit: str = UNIT
    disagreements: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Floor(Cell):
    """GB/s that a check of somebody else accepts: a sign of life, never an expectation."""

    stack: str
    disagreements: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Signature(Cell):
    """GB/s that a source measured under a known fault, of a cause class of `smoke_training.model.Cause`."""

    cause: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Tables:
    """All rows of all clouds."""

    machines: tuple[Machine, ...]
    figures: tuple[Figure, ...]
    floors: tuple[Floor, ...]
    signatures: tuple[Signature, ...]

    @property
    def fabrics(self) -> tuple[str, ...]:
        """Every fabric the tables know."""
        return tuple(sorted({name for machine in self.machines for name in machine.fabrics}))


@cache
def shipped() -> Tables:
    """The tables of this package; TableError when a file is malformed."""
    return parse({cloud: _text(cloud) for cloud in CLOUDS})


def parse(files: Mapping[str, str]) -> Tables:
    """Tables from TOML texts by name; TableError names file, kind of row, its number and the fault."""
    return Tables(
        machines=tuple(_rows(files, "machine", Machine)),
        figures=tuple(_rows(files, "figure", Figure)),
        floors=tuple(_rows(files, "floor", Floor)),
        signatures=tuple(_rows(files, "signature", Signature)),
    )


Row = TypeVar("Row", Machine, Figure, Floor, Signature)


def _text(cloud: str) -> str:
    return importlib.resources.files(__package__).joinpath(f"{cloud}.toml").read_text(encoding="utf-8")


def _rows(files: Mapping[str, str], kind: str, model: type[Row]) -> Iterable[Row]:
    for name, text in files.items():
        try:
            content = tomllib.loads(text)
            sources = {key: Source(**row) for key, row in content.get("sources", {}).items()}
            gpus = {name: row["gpus"] for row in content.get("machine", []) for name in row["instance_types"]}
        except (tomllib.TOMLDecodeError, TypeError, KeyError) as error:
            raise TableError(f"{name}.toml: {error}") from error
        for number, run in enumerate(content.get(kind, []), 1):
            try:
                for row in [run] if model is Machine else _cells(run):
                    shared = {key: value for key, value in row.items() if key != "instance_types"}
                    for name_of_type in row["instance_types"]:
                        values = {**shared, "instance_type": name_of_type}
                        if model is not Machine:
                            values["gpus_per_node"] = gpus[name_of_type]
                        yield model(**_values(values, sources, {field.name for field in fields(model)}))
            except (KeyError, TypeError, ValueError) as error:
                raise TableError(f"{name}.toml [[{kind}]] {number}: {error}") from error


def _cells(run: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """One row per collective and size of a run."""
    common = {key: value for key, value in run.items() if not isinstance(value, dict)}
    if len(common) == len(run):
        raise TypeError("no collective with its figures by size")
    for collective, sizes in run.items():
        for size, found in sizes.items() if isinstance(sizes, dict) else ():
            own = found if isinstance(found, dict) else {"value": found}
            number, _, unit = size.partition(" ")
            row = {**common, **own, "collective": collective, "size_bytes": int(number) << _SHIFTS[unit]}
            remarks = [*common.get("disagreements", []), *own.get("disagreements", [])]
            yield {**row, "disagreements": remarks} if remarks else row


def _values(row: Mapping[str, Any], sources: Mapping[str, Source], known: set[str]) -> dict[str, Any]:
    unknown = set(row) - known
    if unknown:
        raise TypeError(f"unknown keys {', '.join(sorted(unknown))}")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    for key in ("source", "inside_source"):
        if key in values:
            values[key] = sources[values[key]]
    return values
