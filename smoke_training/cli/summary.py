"""`summary RESULT`: write the HTML page of one run."""

import argparse
import sys
from pathlib import Path

from smoke_training import evidence
from smoke_training.cli import files
from smoke_training.record import run_record
from smoke_training.record.html import page

NAME = "summary"
HELP = "make the HTML summary of a result"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("result", type=Path, help="a result document (JSON)")
    parser.add_argument("--samples", type=Path, help="its samples; default: beside the result")
    parser.add_argument("--out", type=Path, help="output file (default: beside the result)")


def main(chosen: argparse.Namespace) -> int:
    """Write the page; 0."""
    path: Path = chosen.result
    target: Path = chosen.out or run_record.beside(path, run_record.SUMMARY)
    result, lines = files.result(path), []
    if chosen.samples is not None:
        lines = files.samples(chosen.samples)
    elif run_record.beside(path, run_record.SAMPLES).exists():
        lines = files.samples_of(result, path)
    else:
        sys.stderr.write(f"{run_record.beside(path, run_record.SAMPLES)}: not found; plots are left out\n")
    files.write(target, page.render(result, evidence.parse(lines)))
    sys.stdout.write(f"{target}\n")
    return 0
