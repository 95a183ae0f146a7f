"""`trainstack smoke`: the command line of the validation program, which ships into the cluster."""

from collections.abc import Callable, Sequence

import typer

from infra.errors import Problem
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
    "references": "List machine types with published figures; of one, with sources: --machine TYPE.",
    "replay": "Send a result that was recorded during an outage to the tracking server.",
}


def _refused(_command: str, problems: Sequence[str]) -> int:
    """Print problems as JSON, of texts as `path: rule; fix`; return the exit code of ERROR."""
    from smoke_training.__main__ import ERROR  # noqa: PLC0415 - help needs none of them
    from trainstack.cli.execution import fail  # noqa: PLC0415

    rows = []
    for text in problems:
        path, _, rest = text.partition(": ")
        rule, _, fix = rest.partition("; ")
        rows.append(Problem(path, None, rule, fix, code="smoke-refused"))
    return fail([], rows, ERROR, as_json=True)


def _forwarding(name: str) -> Callable[[typer.Context], None]:
    def command(context: typer.Context) -> None:
        from smoke_training.__main__ import ERROR, STOPPED  # noqa: PLC0415 - help needs none of them

        if name == "run" and not {"-h", "--help"} & {*context.args}:
            extras.require_rehearse("smoke run")
        try:
            from smoke_training import cli  # noqa: PLC0415
            from trainstack import accept, references, render  # noqa: PLC0415 - not in the program that ships
            from trainstack.cli.execution import wants_json  # noqa: PLC0415

            commands = (*cli.COMMANDS, render, accept, references)
            refused = _refused if wants_json(context.args) else cli.refuse
            raise typer.Exit(cli.main([name, *context.args], "trainstack smoke", commands, refused))
        except KeyboardInterrupt:
            typer.echo(STOPPED, err=True)
            raise typer.Exit(ERROR) from None

    return command


for _name, _help in COMMANDS.items():
    app.command(_name, help=_help, context_settings=_FORWARDED)(_forwarding(_name))
