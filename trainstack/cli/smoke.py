"""`trainstack smoke`: the command line of the validation program, which ships into the cluster."""

from collections.abc import Callable

import typer

from trainstack import extras

app = typer.Typer(
    help="Validate distributed training: on this machine, or from recorded runs.", no_args_is_help=True
)

# All arguments after a command's name, also `--help`, are passed to the program, which describes them.
_FORWARDED = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
COMMANDS = {
    "run": "Validate this machine: --ranks N --out FILE; quick unless --full, a part with --only.",
    "plan": "Show the steps, duration, cost and checks of a run.",
    "judge": "Judge the recorded samples of a run again, offline.",
    "compare": "Compare two results, figure by figure.",
    "explain": "Explain a result: findings, confidence, and next steps.",
    "render": "Render a run plan as a Job, JobSet, TrainJob, batch script or request of a managed service.",
    "summary": "Write the summary of a result as HTML.",
    "accept": "Make a run the reference of later ones: --because TEXT; for machines without a published one.",
    "references": "Show the published figures of a machine type with their sources: --machine TYPE.",
    "replay": "Send a result that was recorded during an outage to the tracking server.",
}


def _forwarding(name: str) -> Callable[[typer.Context], None]:
    def command(context: typer.Context) -> None:
        from smoke_training.__main__ import ERROR, STOPPED  # noqa: PLC0415 - help needs none of them

        if name == "run" and not {"-h", "--help"} & {*context.args}:
            extras.require_rehearse("smoke run")
        try:
            from smoke_training import cli  # noqa: PLC0415
            from trainstack import accept, references, render  # noqa: PLC0415 - not in the program that ships

            commands = (*cli.COMMANDS, render, accept, references)
            raise typer.Exit(cli.main([name, *context.args], "trainstack smoke", commands))
        except KeyboardInterrupt:
            typer.echo(STOPPED, err=True)
            raise typer.Exit(ERROR) from None

    return command


for _name, _help in COMMANDS.items():
    app.command(_name, help=_help, context_settings=_FORWARDED)(_forwarding(_name))
