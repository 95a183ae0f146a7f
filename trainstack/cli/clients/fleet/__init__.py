"""`trainstack fleet`: commands on the stacks of many clients."""

import typer

from trainstack.cli.clients.fleet import deploying, reading

app = typer.Typer(help="Commands on the stacks of many clients (fleet.yaml).", no_args_is_help=True)
app.command("list")(reading.listed)
app.command("preview")(reading.preview)
app.command("up")(deploying.up)
for _name, _help in {
    "cost": "Price every stack; asks no cloud.",
    "status": "Show every stack, its gate and its alerts.",
    "drift": "Show what was changed outside of the programs.",
    "audit": "Judge the state of every stack by the rules of the policies.",
    "validate": "Validate every running node of every stack with a schedule.",
}.items():
    app.command(_name, help=_help)(reading.reading(_name, _help))
