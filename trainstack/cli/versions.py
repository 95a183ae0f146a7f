"""`trainstack versions`: pinned versions of a stack, newer ones, and the nodes that an update drains."""

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from infra.exit_codes import ExitCode
from trainstack.cli.clouds.choice import services_of
from trainstack.cli.output import Format, FormatOption, print_json, print_table, print_warnings
from trainstack.cli.stack import Stack

if TYPE_CHECKING:  # help needs none of them
    from infra.catalog.ages import OldSource
    from trainstack.versions.pins import Row

SCHEMA = "trainstack.versions/1"

Update = Annotated[
    bool,
    typer.Option(
        "--update",
        help="Write the newest add-ons and node image into the stack file. AWS only: GKE chooses its own.",
    ),
]
Kubernetes = Annotated[
    bool,
    typer.Option(
        "--kubernetes",
        help="With --update: write the next minor version of Kubernetes, on AWS with what runs on it.",
    ),
]


def versions(
    stack: Stack = "",
    *,
    update: Update = False,
    kubernetes: Kubernetes = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show newer versions than the pinned ones, and the nodes that an update drains. Sends requests."""
    from infra.stackspec.load import CONFIG  # noqa: PLC0415

    if kubernetes and not update:
        fix = "Add --update, or leave it out: the table has every newer version."
        raise UserError([Problem("--kubernetes", None, "is a part of --update", fix, code="option-missing")])
    show(stack, CONFIG, update=update, kubernetes=kubernetes, as_json=form is Format.JSON)


def show(stack: str, folder: Path, *, update: bool, kubernetes: bool = False, as_json: bool = False) -> None:
    """The same for a stack file in a folder. Raises UserError, and Exit where a version is unknown."""
    from infra import stackspec  # noqa: PLC0415
    from infra.catalog.ages import old_sources  # noqa: PLC0415
    from trainstack.versions.pins import moved  # noqa: PLC0415

    loaded = stackspec.load_typed(stack, folder)
    print_warnings(loaded.broken)
    spec = loaded.spec
    pinned = services_of(spec.cloud).versions()
    if update and not kubernetes and (problem := pinned.update_problem(spec)):
        raise UserError([problem])
    rows, old = pinned.rows(spec), [*old_sources(datetime.date.today())]
    newer = [row for row in rows if row.is_newer]
    if not as_json:
        print_table(("kind", "name", "pinned", "newest", "steps", "drains"), [_cells(row) for row in rows])
        typer.echo(f"{len(newer)} newer; {sum(row.newest is None for row in rows)} unknown")
        print_old_facts(old)
    if problem := next((row.logged_out for row in rows if row.logged_out), None):
        raise UserError([problem])
    minor = _next_minor(rows) if kubernetes else None
    of_minor: list[Row] = []
    if minor:  # what runs on it has versions of its own
        of_minor = pinned.rows(moved(spec, minor))
        if problems := [*_unknown_on(minor, of_minor)]:
            raise UserError(problems)
        newer = [row for row in of_minor if row.is_newer]
    written = _update(stack, folder, newer, minor) if update else 0
    if as_json:
        print_json(
            SCHEMA,
            {
                "stack": stack,
                "pins": [_document(row) for row in rows],
                "written": written,
                "old_facts": [one._asdict() for one in old],
            },
        )
    elif update:
        typer.echo(f"{written} written to Pulumi.{stack}.yaml; preview with `trainstack preview -s {stack}`")
    if any(row.error for row in (*rows, *of_minor)):
        raise typer.Exit(ExitCode.USAGE)


def print_old_facts(old: list["OldSource"]) -> None:
    """Print the tables of facts whose sources are older than they allow, and how many facts rest on them."""
    if old:
        columns = ("table", "source", "of", "good for days", "facts")
        typer.echo("Facts to check anew:")
        print_table(columns, [tuple(map(str, one)) for one in old])


def _next_minor(rows: list["Row"]) -> str:
    """The minor version after that of the control plane. Raises UserError without one."""
    row = next(row for row in rows if row.pin.kind == "Kubernetes")
    if row.steps:
        return row.steps[0]
    rule = f"the newest version is unknown: {row.error}" if row.error else f"{row.pin.version} is the newest"
    fix = "Leave --kubernetes out, or try again later."
    raise UserError([Problem("--kubernetes", row.pin.version, rule, fix, code="no-newer-kubernetes")])


def _unknown_on(minor: str, rows: list["Row"]) -> Iterator[Problem]:
    """A problem for each pin whose version on a minor version of Kubernetes is unknown."""
    for row in rows:
        if row.pin.kind != "Kubernetes" and row.pin.version and row.newest is None:
            rule = f"its version on Kubernetes {minor} is unknown: {row.error or 'none is offered'}"
            fix = "Try again later, or write the versions into the stack file yourself."
            yield Problem(f"{row.pin.kind} {row.pin.name}", None, rule, fix, code="no-version-for-kubernetes")


def _update(stack: str, folder: Path, newer: list["Row"], minor: str | None) -> int:
    """Write newer versions into the stack file; how many.

    Raises UserError, and changes nothing, where the stack file would be refused with them.
    """
    from infra import stackspec  # noqa: PLC0415
    from trainstack.versions import stack_file  # noqa: PLC0415

    addons = {row.pin.name: str(row.newest) for row in newer if row.pin.kind == "add-on"}
    image = next((row.newest for row in newer if row.pin.kind == "node image"), None)
    path = folder / f"Pulumi.{stack}.yaml"
    before = path.read_bytes()
    try:
        stack_file.update(path, addons, image, datetime.date.today(), kubernetes=minor)
        stackspec.load_file(stack, folder)
    except BaseException:
        path.write_bytes(before)
        raise
    return len(addons) + bool(image) + bool(minor)


def _cells(row: "Row") -> tuple[str, ...]:
    pin = row.pin
    newest = row.newest or f"unknown: {row.error or 'no version is offered'}"
    drains = pin.drains if row.is_newer else ""
    return pin.kind, pin.name, pin.version or "EKS's choice", newest, ", then ".join(row.steps), drains


def _document(row: "Row") -> dict[str, object]:
    pin = row.pin
    return {
        "kind": pin.kind,
        "name": pin.name,
        "pinned": pin.version,
        "newest": row.newest,
        "is_newer": row.is_newer,
        "steps": row.steps,
        "drains": pin.drains,
        "error": None if row.error is None else str(row.error),
    }
