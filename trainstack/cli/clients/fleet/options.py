"""Options of fleet commands, and the fleet that they select."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import Problem, UserError
from trainstack.cli.output import Format, format_option
from trainstack.fleet import NAME

if TYPE_CHECKING:  # help needs none of them
    from trainstack.fleet.fleet_file import Fleet
    from trainstack.fleet.stacks import FleetStacks

File = Annotated[Path, typer.Option("--file", help="The fleet file, or its folder.", metavar="FILE")]
Clients = Annotated[list[str] | None, typer.Option("--client", help="Only this client; repeatable.")]
Clouds = Annotated[list[str] | None, typer.Option("--cloud", help="Only stacks on this cloud; repeatable.")]
Environments = Annotated[
    list[str] | None, typer.Option("--environment", help="Only stacks of this environment; repeatable.")
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", help="Only clients with one of these tags; repeatable.")
]
Since = Annotated[
    str,
    typer.Option(
        "--changed-since", metavar="REV", help="Only stacks whose folder differs from this commit of git."
    ),
]
Rehearse = Annotated[
    bool, typer.Option("--rehearse", help="Use the emulated clouds on this machine instead of the real ones.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        max=64,
        help="Stacks at one time; default: limits.workers, else from CPUs and memory.",
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin anew, also where the last run was not finished.")]
Junit = Annotated[Path | None, typer.Option("--junit", help="Also write JUnit XML.", metavar="FILE")]
Page = Annotated[Path | None, typer.Option("--page", help="Also write one page of HTML.", metavar="FILE")]
Form = Annotated[Format, format_option(Format, "Output format: text for people, json for programs.")]
HERE = Path(NAME)


Policies = Annotated[
    bool, typer.Option("--policies/--no-policies", help="Judge each preview by the policies of the package.")
]


@dataclass(frozen=True)
class ReportFiles:
    """Forms and files of the report of a command."""

    form: Format = Format.TEXT
    junit: Path | None = None
    page: Path | None = None

    def require_writable(self) -> None:
        """Raise UserError for files that cannot be written, before the command takes its time."""
        problems = [
            Problem(
                option, str(path), "its folder does not exist", "Make the folder.", code="report-not-writable"
            )
            for option, path in (("--junit", self.junit), ("--page", self.page))
            if path and not path.absolute().parent.is_dir()
        ]
        if problems:
            raise UserError(problems)


@dataclass(frozen=True)
class Conditions:
    """Options that select stacks."""

    clients: list[str] | None = None
    clouds: list[str] | None = None
    environments: list[str] | None = None
    tags: list[str] | None = None
    since: str = ""


@dataclass(frozen=True)
class Chosen:
    """A fleet and its selected stacks."""

    fleet: "Fleet"
    base: Path
    """Folder of the fleet file."""
    stacks: "FleetStacks"
    rehearse: bool


def choose(file: Path, conditions: Conditions, *, rehearse: bool) -> Chosen:
    """Read a fleet file and select stacks. Raises UserError."""
    from trainstack.fleet.fleet_file import load  # noqa: PLC0415 - help needs none of them
    from trainstack.fleet.selection import Selection, selected  # noqa: PLC0415
    from trainstack.fleet.stacks import stacks_of  # noqa: PLC0415

    fleet = load(file)
    base = (file if file.is_dir() else file.parent).absolute()
    stacks = stacks_of(fleet, base, rehearse=rehearse)
    wanted = Selection(
        tuple(conditions.clients or ()),
        tuple(conditions.clouds or ()),
        tuple(conditions.environments or ()),
        tuple(conditions.tags or ()),
        conditions.since,
    )
    names = [one.name for one in fleet.clients]
    return Chosen(fleet, base, selected(stacks, names, wanted), rehearse)
