"""`replay RESULT...`: record results in MLflow that could not be recorded by their runs."""

import argparse
import os
import sys
import time
from pathlib import Path

from smoke_training.cli import files
from smoke_training.reader import DocumentError
from smoke_training.record import run_record
from smoke_training.record.tracking import PATIENCE_S

NAME = "replay"
HELP = "record results in MLflow (MLFLOW_TRACKING_URI) that were not synced"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("results", type=Path, nargs="+", help="result documents (JSON), samples beside them")


def main(chosen: argparse.Namespace) -> int:
    """Record every result once; 0 when all are in MLflow."""
    problems = []
    for path in chosen.results:
        try:
            sys.stdout.write(f"{path}: {_replayed(path)}\n")
        except DocumentError as error:
            problems += error.problems
    if problems:
        raise DocumentError(problems)
    return 0


def _replayed(path: Path) -> str:
    """Record one result and describe how; DocumentError if it cannot be recorded."""
    result = files.result(path)
    if result["mlflow"]["synced"]:
        return f"recorded before, run {result['mlflow']['run_id']}"
    lines = files.samples_of(result, path)
    outcome = run_record.publish(result, lines, path, os.environ, time.monotonic() + PATIENCE_S)["mlflow"]
    if not outcome["synced"]:
        raise DocumentError([f"{path}: {outcome['reason']}"])
    return f"recorded, run {outcome['run_id']}"
