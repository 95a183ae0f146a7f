"""Commands of `trainstack`, in groups; what a command needs is imported when it runs."""

from collections.abc import Callable
from typing import Any

import typer

from infra import exit_codes
from trainstack.cli import (
    access,
    advise,
    audit,
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
from trainstack.cli.jobs import run, runs

app = typer.Typer(
    name="trainstack",
    help="Cloud training stacks: priced before, validated on, and accounted for after the deploy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
GROUPS: dict[str, dict[str, Callable[..., Any] | typer.Typer]] = {
    "Deploy": {
        "preflight": preflight.preflight, "preview": stack.preview, "up": stack.up,
        "refresh": stack.refresh, "destroy": stack.destroy, "explain": stack.explain,
    },
    "Operate": {
        "status": status.status, "validate": validate.validate, "versions": versions.versions,
        "ledger": ledger.ledger, "queue": queue.app, "kubeconfig": access.kubeconfig,
        "open": access.open_service,
    },
    "Train": {
        "advise": advise.app, "run": run.run, "runs": runs.runs, "stop": runs.stop, "smoke": smoke.app,
    },
    "Audit": {"audit": audit.audit, "collect": collect.collect},
    "Rehearse": {"rehearse": rehearse.app, "cluster": cluster.cluster},
}  # fmt: skip
"""Commands by name, by panel of the help."""

for _panel, _commands in GROUPS.items():
    for _name, _command in _commands.items():
        _codes = exit_codes.help_text(_name) if _name in exit_codes.OF_COMMAND else None
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_panel, epilog=_codes)
        else:
            app.command(_name, rich_help_panel=_panel, epilog=_codes)(_command)
