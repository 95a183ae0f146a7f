"""`trainstack smoke`: the validation's own command line, of the program that ships into the cluster."""

from collections.abc import Callable

import typer

app = typer.Typer(
    help="Validate distributed training: on this machine, or from what a run recorded.\n\n"
    "Exit codes: 0 PASS, 1 FAIL, 2 INCONCLUSIVE, 3 ERROR, 4 SKIPPED.",
    no_args_is_help=True,
)

# Everything after a command's name, `--help` too, goes on as it is: one description of the options only.
_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
COMMANDS = {
    "run": "Validate this machine: --ranks N --out FILE; quick unless --full, a part with --only.",
    "plan": "What a run would do, how long it would take, what it would cost, what would be judged.",
    "judge": "Judge the recorded samples of a run again, offline.",
    "compare": "Compare two results, figure by figure.",
    "explain": "Explain a result: what was found, how surely, and what to do.",
    "render": "A run plan as a Job, JobSet, TrainJob, batch script or request of a managed service.",
    "summary": "The summary of a result, as HTML.",
    "replay": "Send a result that was recorded during an outage to the tracking server.",
}


def _passing_on(name: str) -> Callable[[typer.Context], None]:
    def command(context: typer.Context) -> None:
        from smoke_training.__main__ import ERROR, STOPPED  # noqa: PLC0415 - only who asks for it waits for it

        try:
            from smoke_training.cli import main  # noqa: PLC0415

            raise typer.Exit(main([name, *context.args], "trainstack smoke"))
        except KeyboardInterrupt:
            typer.echo(STOPPED, err=True)
            raise typer.Exit(ERROR) from None

    return command


for _name, _help in COMMANDS.items():
    app.command(_name, help=_help, context_settings=_PASSED_ON)(_passing_on(_name))
