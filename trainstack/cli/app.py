"""Puts the commands together; each group is a module that is imported when one of its commands runs."""

import typer

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
app.command()(preflight.preflight)
app.command()(stack.up)
app.command()(stack.preview)
app.command()(stack.refresh)
app.command()(stack.destroy)
app.command()(stack.status)
app.command()(stack.explain)
app.command()(validate.validate)
app.command()(ledger.ledger)
app.command()(versions.versions)
app.command()(audit.audit)
app.command()(collect.collect)
app.command()(cluster.cluster)
app.command()(access.kubeconfig)
app.command("open")(access.open_service)
app.command()(run.run)
app.command()(runs.runs)
app.command()(runs.stop)
app.add_typer(rehearse.app, name="rehearse")
app.add_typer(smoke.app, name="smoke")
app.add_typer(queue.app, name="queue")
app.add_typer(advise.app, name="advise")
