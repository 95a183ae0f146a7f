"""Output of commands: JSON documents for programs, tables and fields that fit the terminal for people."""

import dataclasses
import datetime
import json
import os
import sys
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infra.errors import Problem, UserError

if TYPE_CHECKING:  # slow to import
    from rich.console import Console

_UNLIMITED = 10_000
"""Columns where the output is no terminal: a file or a pipe gets one line per row."""
_CONTROLLING = ("Cc", "Cf", "Cs", "Zl", "Zp")


class Format(StrEnum):
    """Output format of a command."""

    TEXT = "text"
    JSON = "json"


def format_option(formats: Collection[str], help: str) -> Any:
    """The option for one of the formats; `table`, the name of `text` in older scripts, is not listed."""
    known = {str(one): one for one in formats}

    def parse(given: str) -> str:
        if found := known.get("text" if given == "table" else given):
            return found
        raise ValueError(f"{given!r} is not one of {', '.join(map(repr, known))}.")

    metavar = f"[{'|'.join(known)}]"
    return typer.Option(
        "--format", "-f", help=help, metavar=metavar, parser=parse, autocompletion=lambda: [*known]
    )


FormatOption = Annotated[Format, format_option(Format, "Output format: text for people, json for programs.")]


def require_terminal() -> None:
    """Raise UserError where no terminal can ask for a confirmation."""
    if not sys.stdin.isatty():
        rule, fix = "confirmation needs a terminal", "Add --yes, or run it in a terminal."
        raise UserError([Problem("--yes", None, rule, fix, code="confirmation-needs-terminal")])


def print_warnings(problems: Iterable[Problem]) -> None:
    """Print, apart from the output, problems that do not keep a command from its work."""
    for problem in problems:
        typer.echo(f"warning: {problem}", err=True)


def print_json(schema: str, document: Mapping[str, Any]) -> None:
    """Print a document with the id of its schema (docs/reference/schemas)."""
    typer.echo(json.dumps({"schema": schema, **document}, indent=2, default=plain))


def plain(value: Any) -> Any:
    """A value as JSON: times as RFC 3339 in UTC, records as objects."""
    if isinstance(value, datetime.datetime):
        return f"{value.astimezone(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Path):
        return str(value)
    return list(value)


def printable(text: str) -> str:
    """A text on one line that cannot control a terminal: a line break becomes a backslash and `n`.

    Messages of a cluster quote what members wrote, such as the name of an image. Characters that reorder or
    hide others are spelled out, too (Unicode's categories Cc, Cf, Zl and Zp).
    """
    return "".join(ascii(one)[1:-1] if unicodedata.category(one) in _CONTROLLING else one for one in text)


def print_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print each text on a line of its own; `err`: to stderr."""
    for line in lines:
        typer.echo(printable(line), err=err)


def print_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", right: Sequence[str] = ()
) -> None:
    """Print a table; where its words do not fit the terminal, one block of `column: value` lines per row.

    `right` names the columns that are aligned to the right.
    """
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    if title:
        typer.echo(title)
    if not rows:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in head:
        table.add_column(Text(name), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console = _console()
    unlimited = console.options.update(max_width=_UNLIMITED)
    if console.measure(table, options=unlimited).minimum <= console.width:
        with console.capture() as captured:
            console.print(table)
        # Without the blanks that fill the last column.
        typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))
        return
    for row in rows:
        cells = [(f"{name}:", printable(cell)) for name, cell in zip(head, row, strict=True) if cell]
        print_fields(cells, width=0)
        typer.echo()


def print_fields(rows: Sequence[tuple[str, str]], width: int = 10) -> None:
    """Print names and values in two columns; `width` is the least one of the names.

    Values are wrapped between words only, so a long URL or path stays one that can be copied.
    """
    left = max([width, *(len(name) for name, _ in rows)]) + 1
    right = max(_console().width - left, 1)
    wrapped = partial(textwrap.wrap, width=right, break_long_words=False, break_on_hyphens=False)
    for name, value in rows:
        lines = [line for paragraph in value.splitlines() for line in wrapped(paragraph) or [""]]
        for number, line in enumerate(lines or [""]):
            typer.echo(f"{'' if number else name:<{left}}{line}".rstrip())


def _console() -> "Console":
    from rich.console import Console  # noqa: PLC0415

    limited = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(emoji=False, width=None if limited else _UNLIMITED)
