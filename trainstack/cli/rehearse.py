"""`trainstack rehearse`: the emulated clouds on this machine."""

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from rehearsal.projects.reports import Form
from trainstack.cli.stack import AnyStack, or_default

app = typer.Typer(help="The emulated clouds on this machine.", no_args_is_help=True)


@app.command()
def env(stack: AnyStack = None) -> None:
    """Print the environment for plain `pulumi` commands on the rehearsed stack: eval "$(...)"."""
    from rehearsal.isolation import credentials  # noqa: PLC0415
    from trainstack.cli.operations.session import checkout_workspace  # noqa: PLC0415

    environment = checkout_workspace(or_default(stack)).environment
    for name in sorted(credentials(os.environ) - environment.keys()):
        typer.echo(f"unset {name}")
    for name, value in sorted(environment.items()):
        typer.echo(f"export {name}={shlex.quote(value)}")


@app.command()
def login(stack: AnyStack = None) -> None:
    """Show the URL and the first user of the rehearsed MLflow server, which exist only on this machine."""
    from trainstack.cli.access import deployed, show_rehearsed  # noqa: PLC0415

    exported, rehearsal = deployed(or_default(stack), rehearse=True)
    assert rehearsal
    show_rehearsed(exported, rehearsal, team="")


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a Pulumi project.")]
Arguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="-- PULUMI ARGS", help="A Pulumi command; up, up and destroy by default."),
]
ProjectStack = Annotated[
    str, typer.Option("--stack", "-s", help="The project's stack; needed when it has several.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--config", "-c", metavar="KEY=VALUE", help="A setting for the rehearsal.")
]


Report = Annotated[
    Form,
    typer.Option(
        "--report", help="Form of the report: text and html for people, json for programs, junit for CI."
    ),
]
AssertionFile = Annotated[
    Path | None,
    typer.Option("--assertions", help="Default: rehearsal.yaml of DIR, if it exists.", metavar="FILE"),
]

Seed = Annotated[
    Path | None,
    typer.Option(
        "--seed",
        help="File of `pulumi stack export`, without secrets: preview the program against that state, and "
        "create nothing.",
        metavar="FILE",
    ),
]


@app.command()
def run(
    folder: Folder,
    arguments: Arguments = None,
    *,
    stack: ProjectStack = "",
    config: Settings = None,
    report: Report = "text",
    assertions: AssertionFile = None,
    seed: Seed = None,
) -> None:
    """Rehearse any Pulumi project in Python, TypeScript or Go: aws, gcp, kubernetes, random and tls.

    Creates its resources, checks that a second `up` changes nothing and that its assertions hold, and deletes
    them. Exits with 1 where a step fails, a resource changes or is left, or an assertion does not hold.
    """
    from rehearsal.projects import run as project_run  # noqa: PLC0415

    options = project_run.Options(stack, config or (), report, assertions, seed)
    raise typer.Exit(project_run.run(folder, options, arguments or ()))


Urn = Annotated[str, typer.Argument(metavar="URN", help="A URN, or a name that only one resource has.")]
Values = Annotated[
    list[str], typer.Argument(metavar="KEY=VALUE", help="Such as tags.owner=me or enableDnsSupport=false.")
]
Dir = Annotated[Path | None, typer.Option("--dir", help="The folder of a project of `rehearse run`.")]


@app.command()
def drift(urn: Urn, values: Values, dir: Dir = None) -> None:
    """Change a resource of the emulated clouds outside of its program, as drift."""
    from rehearsal import drifting  # noqa: PLC0415

    typer.echo(drifting.change(urn, values, dir))


@app.command()
def delete(urn: Urn, dir: Dir = None) -> None:
    """Delete a resource of the emulated clouds outside of its program, as drift."""
    from rehearsal import drifting  # noqa: PLC0415

    typer.echo(drifting.delete(urn, dir))


Existing = Annotated[
    Path, typer.Argument(metavar="FILE", help="A list in YAML, or `pulumi stack export` of another stack.")
]


@app.command()
def seed(file: Existing, dir: Dir = None) -> None:
    """Add existing resources of an account or project, so that programs can refer to them."""
    from rehearsal.projects import seeding  # noqa: PLC0415

    typer.echo(seeding.seed(file, dir))


@app.command()
def stop() -> None:
    """Stop every process of the rehearsal; resources stay in its state."""
    from rehearsal.projects import homes  # noqa: PLC0415

    homes.of_checkout().stop()
