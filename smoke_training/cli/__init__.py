"""Command line of `python -m smoke_training` and of the zip; one module per command."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from smoke_training.cli import announce, compare, explain, judge, node, plan, replay, run, summary
from smoke_training.model import EXIT_CODES, Verdict
from smoke_training.reader import DocumentError
from smoke_training.verdict_record import VerdictRecord, limit_of

# Each has NAME, HELP, `add(parser)` for its arguments and `main(chosen) -> exit code`, which raises
# DocumentError for what it cannot use.
COMMANDS = (run, node, judge, plan, explain, compare, summary, replay, announce)


class _Parser(argparse.ArgumentParser):
    """Exits with the code of ERROR where argparse exits with 2, which means INCONCLUSIVE here."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_CODES[Verdict.ERROR], f"{self.prog}: error: {message}\n")


def main(
    arguments: list[str] | None = None,
    program: str = "smoke_training",
    modules: Sequence[ModuleType] = COMMANDS,
    refused: Callable[[str, Sequence[str]], int] | None = None,
) -> int:
    """Run one command of `modules`; exit codes 0 PASS, 1 FAIL, 2 INCONCLUSIVE, 3 ERROR, 4 SKIPPED.

    `refused` reports problems in place of `refuse`. `announce`, and `job` in the zip of managed jobs, exit
    with the code of their program.
    """
    parser = _Parser(
        prog=program, description="Validation of distributed training: measure, decide, attribute, record."
    )
    codes = f"exit codes: {', '.join(f'{code} {name}' for name, code in EXIT_CODES.items())}"
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in modules:
        own = None if command.NAME in ("announce", "job") else codes
        command.add(commands.add_parser(command.NAME, help=command.HELP, epilog=own))
    chosen = parser.parse_args(arguments)
    try:
        return int(next(c for c in modules if chosen.command == c.NAME).main(chosen))
    except DocumentError as error:
        return (refused or refuse)(chosen.command, error.problems)


def refuse(command: str, problems: Sequence[str]) -> int:
    """Report problems, also in the termination message where there is one; return the exit code of ERROR."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    record = VerdictRecord(str(Verdict.ERROR), f"ERROR {command}: {count}", details=tuple(problems))
    sys.stderr.write(record.text + "\n")
    if message := os.environ.get("TERMINATION_MESSAGE_PATH"):
        Path(message).write_text(record.line(limit_of(os.environ)))
    return EXIT_CODES[Verdict.ERROR]
