"""`announce FOLDER COMMAND...`: run any training loop and announce its checkpoints."""

import argparse
from pathlib import Path

from smoke_training.reader import DocumentError
from smoke_training.runtime import announcer

NAME = "announce"
HELP = "run a command, and announce the checkpoints that it writes below a folder"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("folder", type=Path, help="where the command writes its checkpoints alone")
    text = "a checkpoint is complete after so many seconds without a change (default: %(default)g)"
    parser.add_argument("--settled-s", type=float, default=announcer.SETTLED_S, help=text)
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="such as torchrun")


def main(chosen: argparse.Namespace) -> int:
    """Return the command's exit code, as shells report it. Raises DocumentError without a command."""
    command = chosen.program[1:] if chosen.program[:1] == ["--"] else chosen.program
    if not command:
        raise DocumentError(["no command is given: announce FOLDER -- COMMAND..."])
    return announcer.run(command, announcer.Announcer(chosen.folder, chosen.settled_s))
