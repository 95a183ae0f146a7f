"""`smoke references`: machine types that are known, and what is known of one, each figure with its source."""

import argparse
import dataclasses
import json
from collections.abc import Iterator, Sequence

from smoke_training.cli import files
from smoke_training.cli.run import count
from smoke_training.expected import lookup
from smoke_training.expected.tables import FabricMachine, Floor, Signature, SourcedFigure, TableCell, shipped
from smoke_training.fabric import Fabric
from smoke_training.formulae.bandwidth import COLLECTIVES
from smoke_training.model import counted
from smoke_training.reader import DocumentError
from smoke_training.record.formatting import size

NAME = "references"
HELP = "published figures of a machine type or hardware class, with their sources"
SCHEMA = "trainstack.smoke-references/1"
KINDS = {SourcedFigure: "figure", Floor: "floor", Signature: "signature"}
LEGEND = (
    "GB/s are of bus bandwidth; +- is the difference between the halves of the same run.",
    "figure: measured on a healthy stack; a superseded one is no limit for current stacks.",
    "floor: limit of a published check, below which a stack does not work; never an expectation.",
    "signature: measured under the fault that is named.",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    text = "a machine type, or a hardware class as hgx-h100, in any case; default: list those that are known"
    parser.add_argument("--machine", help=text)
    parser.add_argument("--collective", choices=COLLECTIVES, help="only figures of this one")
    parser.add_argument("--nodes", type=count, help="only figures of so many nodes")
    parser.add_argument("--fabric", type=Fabric, choices=list(Fabric), help="only this network between nodes")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def main(chosen: argparse.Namespace) -> int:
    """Print the rows; 0."""
    tables, wanted = shipped(), chosen.machine
    machines, cells = lookup.known_of(tables, wanted) if wanted else (list(tables.machines), [])
    if not machines:
        found = lookup.find_machine(tables, wanted, chosen.fabric or Fabric.TCP)
        rule = found.reason if isinstance(found, lookup.NoFigure) else "is not known"
        raise DocumentError([f"--machine: {rule}; `smoke references` without --machine lists all"])
    filters = {name: getattr(chosen, name) for name in ("collective", "nodes", "fabric")}
    given = {name: value for name, value in filters.items() if value is not None}
    if given and not wanted:
        raise DocumentError(
            [f"--{name}: filters the figures of one machine; add --machine" for name in given]
        )
    kept = [c for c in cells if all(getattr(c, name) == value for name, value in given.items())]
    if chosen.format == "json":
        rows = [{"row": KINDS[type(cell)], **dataclasses.asdict(cell)} for cell in kept]
        known = {"schema": SCHEMA, "machines": [dataclasses.asdict(row) for row in machines], "rows": rows}
        text = json.dumps(known, indent=2, default=str)
    elif wanted:
        text = "\n".join(_of_one(machines, kept, len(cells)))
    else:
        text = "\n".join(_known(machines))
    files.write(None, text + "\n")
    return 0


def _known(machines: Sequence[FabricMachine]) -> Iterator[str]:
    """Every machine type on a line, with the number of its figures."""
    yield f"{'machine':<28}{'GPUs':>4}  {'network':<24}{'figures':>7}  like"
    for row in sorted(machines, key=lambda row: (row.instance_type.lower(), row.fabrics)):
        own = [
            c for c in shipped().figures if c.instance_type == row.instance_type and c.fabric in row.fabrics
        ]
        network = f"{'/'.join(row.fabrics)}{f' {row.network_gbit_s:g} Gb/s' if row.network_gbit_s else ''}"
        yield f"{row.instance_type:<28}{row.gpus:>4}  {network:<24}{len(own):>7}  {row.like or ''}".rstrip()
    yield "like: the hardware class whose figures hold where a type has none. One machine: --machine NAME."


def _of_one(machines: Sequence[FabricMachine], cells: Sequence[TableCell], every: int) -> Iterator[str]:
    for row in machines:
        rate = f"{counted(row.nics, 'NIC')}, " if row.nics else ""
        rate += f"{row.network_gbit_s:g} Gb/s" if row.network_gbit_s else "rate of the network not known"
        why = f"; {row.no_figure}" if row.no_figure else f"; like {row.like}" if row.like else ""
        yield f"{row.instance_type}: {counted(row.gpus, 'GPU')}, {'/'.join(row.fabrics)}, {rate}{why}"
    if not cells:
        yield f"None of {every} rows fits the filters." if every else "No source has measured it."
        return
    head = f"{'row':<10}{'network':<11}{'collective':<15}{'nodes':>5}{'size':>9}{'GB/s':>8}{'+-':>7}"
    yield f"\n{head}  of [source]"
    for cell in sorted(cells, key=lambda c: (c.fabric, c.collective, c.nodes, c.size_bytes, c.value)):
        spread = getattr(cell, "spread", None)
        what = cell.meaning if isinstance(cell, Signature) else getattr(cell, "stack", "")
        old = cell.superseded if isinstance(cell, SourcedFigure) else None
        what += f" (superseded: {old})" if old else ""
        yield (
            f"{KINDS[type(cell)]:<10}{cell.fabric:<11}{cell.collective:<15}{cell.nodes:>5}"
            f"{size(cell.size_bytes):>9}{cell.value:>8g}{f'{spread:.1%}' if spread else '':>7}"
            f"  {what} [{cell.source.text}, {cell.source.date}]"
        )
    yield from ("", *LEGEND)
