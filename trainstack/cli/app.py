"""Commands of `trainstack`, in groups; what a command needs is imported when it runs."""

from collections.abc import Callable
from importlib import metadata
from inspect import getdoc
from typing import Annotated, Any

import typer

from infra import exit_codes
from infra.places import located
from trainstack.cli import (
    access,
    advise,
    audit,
    capacity,
    cluster,
    collect,
    ledger,
    preflight,
    queue,
    rehearse,
    smoke,
    stack,
    status,
    validate,
    versions,
)
from trainstack.cli.clients import bootstrap, fleet, handover, new, report, update
from trainstack.cli.jobs import logs, run, runs
from trainstack.cli.slurm import commands as slurm

app = typer.Typer(
    name="trainstack",
    help="Cloud training stacks: priced before, validated on, and accounted for after the deploy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,  # panels cut names of options in narrow terminals
    context_settings={"help_option_names": ["-h", "--help"]},
)
GROUPS: dict[str, dict[str, Callable[..., Any] | typer.Typer]] = {
    "Deploy": {
        "new": new.new, "bootstrap": bootstrap.bootstrap, "preflight": preflight.preflight,
        "cost": stack.cost, "preview": stack.preview, "up": stack.up,
        "refresh": stack.refresh, "destroy": stack.destroy, "explain": stack.explain,
    },
    "Operate": {
        "status": status.status, "drift": stack.drift, "validate": validate.validate,
        "versions": versions.versions, "report": report.report, "ledger": ledger.ledger,
        "queue": queue.app, "logs": logs.logs,
        "capacity": capacity.capacity, "slurm": slurm.app,
        "kubeconfig": access.kubeconfig, "open": access.open_service,
    },
    "Train": {
        "advise": advise.app, "run": run.run, "runs": runs.runs, "stop": runs.stop, "smoke": smoke.app,
    },
    "Audit": {"audit": audit.audit, "collect": collect.collect},
    "Rehearse": {"rehearse": rehearse.app, "cluster": cluster.cluster},
    "Clients": {"update": update.update, "fleet": fleet.app, "handover": handover.handover},
}  # fmt: skip
"""Commands by name, by panel of the help."""


def _show(version: bool) -> None:
    if version:
        typer.echo(f"trainstack {metadata.version('trainstack')}")
        raise typer.Exit


@app.callback()
def _overview(
    version: Annotated[
        bool, typer.Option("--version", callback=_show, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...


for _panel, _commands in GROUPS.items():
    for _name, _command in _commands.items():
        _codes = exit_codes.help_text(_name)
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_panel, epilog=_codes)
            for _part in _command.registered_commands:
                _part.epilog = _codes
                _part.short_help = (_part.help or getdoc(_part.callback) or "").partition("\n")[0]
        else:
            _help = located(getdoc(_command) or "")
            app.command(_name, rich_help_panel=_panel, epilog=_codes, help=_help)(_command)
