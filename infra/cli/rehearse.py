"""`trainstack rehearse`: the emulated clouds on this machine."""

import shlex

import typer

from infra.cli.options import Stack

app = typer.Typer(help="The emulated clouds on this machine.", no_args_is_help=True)


@app.command()
def env(stack: Stack = "dev-aws") -> None:
    """Print the environment in which plain `pulumi` works on the rehearsed stack: eval "$(...)"."""
    from infra.cli.session import rehearsal, rehearsal_environment  # noqa: PLC0415

    for name, value in sorted(rehearsal_environment(rehearsal(), stack).items()):
        typer.echo(f"export {name}={shlex.quote(value)}")


@app.command()
def stop() -> None:
    """End every process of the rehearsal; what was created stays in its state."""
    from infra.cli.session import rehearsal  # noqa: PLC0415

    rehearsal().stop()
