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
def login(stack: Stack = "dev-aws") -> None:
    """Show where the rehearsed MLflow server answers, and its first user; they exist on this machine only."""
    from infra import outputs  # noqa: PLC0415
    from infra.cli.session import open_session  # noqa: PLC0415
    from infra.errors import Problem, UserError  # noqa: PLC0415

    session = open_session(stack, rehearse=True)
    found = {key: output.value for key, output in session.engine.outputs().items()}
    if session.rehearsal is None or outputs.KEY not in found:
        fix = f"Run `trainstack up -s {stack} --rehearse` first."
        raise UserError([Problem("stack", stack, "nothing is deployed in the rehearsal", fix)])
    told = outputs.parse(found)
    user = session.rehearsal.secret(told.mlflow_admin_secret) or {}
    typer.echo(f"url       {session.rehearsal.service_url(told.mlflow_url) or 'not running'}")
    typer.echo(f"username  {user.get('username', 'not made yet')}")
    typer.echo(f"password  {user.get('password', 'not made yet')}")


@app.command()
def stop() -> None:
    """End every process of the rehearsal; what was created stays in its state."""
    from infra.cli.session import rehearsal  # noqa: PLC0415

    rehearsal().stop()
