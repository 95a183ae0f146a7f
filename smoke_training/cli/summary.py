"""`summary RESULT`: the HTML page of one run."""

import argparse
import sys
from pathlib import Path

from smoke_training.cli.failing import refuse
from smoke_training.evidence import Evidence
from smoke_training.record import book, reading
from smoke_training.record.accepted import ResultError
from smoke_training.record.html import page

NAME = "summary"
HELP = "make the HTML summary of a result"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("result", type=Path, help="a result document (JSON)")
    parser.add_argument("--samples", type=Path, help="its samples, where they do not lie beside it")
    parser.add_argument("--out", type=Path, help="where the page goes (default: beside the result)")


def main(chosen: argparse.Namespace) -> int:
    """Write the page; 0, or the exit code of ERROR."""
    path: Path = chosen.result
    target: Path = chosen.out or book.beside(path, book.SUMMARY)
    try:
        result = reading.result(path)
        found = Evidence()
        if chosen.samples is not None:
            found = reading.samples(chosen.samples).found
        elif book.beside(path, book.SAMPLES).exists():
            found = reading.samples_of(result, path).found
        else:
            sys.stderr.write(f"{book.beside(path, book.SAMPLES)}: not there; plots say so\n")
        target.write_text(page.render(result, found))
    except ResultError as error:
        return refuse("no summary can be made", [str(error)])
    except OSError as error:
        return refuse("the summary cannot be written", [f"{target}: {error.strerror or error}"])
    sys.stdout.write(f"{target}\n")
    return 0
