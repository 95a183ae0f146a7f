"""`replay RESULT...`: record results in MLflow that could not be recorded when they were made."""

import argparse
import os
import sys
import time
from pathlib import Path

from smoke_training.cli.failing import refuse
from smoke_training.model import EXIT_CODES, Verdict
from smoke_training.record import book, reading
from smoke_training.record.accepted import ResultError
from smoke_training.record.sink import PATIENCE_S

NAME = "replay"
HELP = "record results in MLflow (MLFLOW_TRACKING_URI) that were not synced"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("results", type=Path, nargs="+", help="result documents (JSON), samples beside them")


def main(chosen: argparse.Namespace) -> int:
    """Record every result once; 0 when all are in MLflow, else the exit code of ERROR."""
    problems = [text for path in chosen.results for text in _replayed(path)]
    if problems:
        return refuse(f"{len(problems)} of {len(chosen.results)} results are not recorded", problems)
    return EXIT_CODES[Verdict.PASS]


def _replayed(path: Path) -> list[str]:
    """What went wrong with one result; empty when it is recorded."""
    try:
        result = reading.result(path)
        if result["mlflow"]["synced"]:
            sys.stdout.write(f"{path}: recorded before, run {result['mlflow']['run_id']}\n")
            return []
        samples = reading.samples_of(result, path)
        final = book.publish(result, samples.lines, path, os.environ, time.monotonic() + PATIENCE_S)
    except ResultError as error:
        return [str(error)]
    except OSError as error:
        return [f"{path}: {error.strerror or error}"]
    outcome = final["mlflow"]
    if not outcome["synced"]:
        return [f"{path}: {outcome['reason']}"]
    sys.stdout.write(f"{path}: recorded, run {outcome['run_id']}\n")
    return []
