"""`smoke references --machine TYPE`: what is known of a machine type, each figure with its source."""

import argparse
import dataclasses
import difflib
import json
from collections.abc import Iterator

from smoke_training.cli import files
from smoke_training.expected import lookup
from smoke_training.expected.tables import FabricMachine, Floor, Signature, SourcedFigure, TableCell, shipped
from smoke_training.reader import DocumentError

NAME = "references"
HELP = "published figures of a machine type or hardware class, with their sources"
KINDS = {SourcedFigure: "figure", Floor: "floor", Signature: "signature"}


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--machine", required=True, help="a machine type, or a hardware class as hgx-h100")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def main(chosen: argparse.Namespace) -> int:
    """Print the rows; 0."""
    machines, cells = lookup.known_of(shipped(), chosen.machine)
    if not machines:
        names = sorted({row.instance_type for row in shipped().machines})
        near = difflib.get_close_matches(chosen.machine, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}"
        raise DocumentError([f"--machine: got {chosen.machine!r}, which no table has; {hint}"])
    if chosen.format == "json":
        rows = [{"row": KINDS[type(cell)], **dataclasses.asdict(cell)} for cell in cells]
        found = {"machines": [dataclasses.asdict(row) for row in machines], "rows": rows}
        files.write(None, json.dumps(found, indent=1, default=str) + "\n")
    else:
        files.write(None, "\n".join(_lines(machines, cells)) + "\n")
    return 0


def _lines(machines: list[FabricMachine], cells: list[TableCell]) -> Iterator[str]:
    for row in machines:
        rate = f"{row.nics} NICs, {row.network_gbit_s:g} Gb/s" if row.network_gbit_s else "NICs not known"
        why = f"; {row.no_figure}" if row.no_figure else f"; like {row.like}" if row.like else ""
        yield f"{row.instance_type}: {row.gpus} GPUs, {'/'.join(row.fabrics)}, {rate}{why}"
    order = sorted(cells, key=lambda c: (c.fabric, c.collective, c.nodes, c.size_bytes, c.value))
    for cell in order:
        spread = getattr(cell, "spread", None)
        what = cell.meaning if isinstance(cell, Signature) else getattr(cell, "stack", "")
        old = cell.superseded if isinstance(cell, SourcedFigure) else None
        what += f" (superseded: {old})" if old else ""
        yield (
            f"{KINDS[type(cell)]:<10}{cell.fabric:<11}{cell.collective:<15}{cell.nodes:>4} nodes"
            f"{cell.size_bytes / 2**30:>9g} GiB{cell.value:>9g} GB/s"
            f"{f' +-{spread:.1%}' if spread else ''}  {what} [{cell.source.text}, {cell.source.date}]"
        )
