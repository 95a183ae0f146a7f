"""`trainstack fleet`: commands on the stacks of many clients."""

import typer

from trainstack.cli.clients.fleet import reading

app = typer.Typer(help="Commands on the stacks of many clients (fleet.yaml).", no_args_is_help=True)
app.command("list")(reading.listed)
for _command in (reading.preview,):
    app.command()(_command)
