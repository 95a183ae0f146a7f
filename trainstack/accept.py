"""`smoke accept RESULT`: make a run the reference of later ones for what no source has measured."""

import argparse
import datetime
import getpass
import json
import os
import sys
from pathlib import Path

from smoke_training.cli import files
from smoke_training.reader import DocumentError
from smoke_training.record import accepted, run_record, tracking
from smoke_training.statistics import baseline as baselines

NAME = "accept"
HELP = "make a run the reference of later ones"
ACCEPTED = "accepted.json"  # beside the result; a plan can carry its content as `baseline`


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("result", type=Path, help="a result document (JSON)")
    parser.add_argument("--because", required=True, help="the reason, recorded with who and when")
    parser.add_argument("--by", help="who decides; default: the user")
    parser.add_argument("--out", type=Path, help=f"output file; default: RESULT.{ACCEPTED}")


def main(chosen: argparse.Namespace) -> int:
    """Record the decision in a file, and in MLflow where the run is recorded; 0."""
    if not chosen.because.strip():
        raise DocumentError(["--because: empty; must be the reason for which this run is the reference"])
    result, by = files.result(chosen.result), chosen.by or _user()
    at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    known = accepted.accept(result, by=by, at=at, because=chosen.because)
    target = chosen.out or run_record.beside(chosen.result, ACCEPTED)
    files.write(target, json.dumps(baselines.render(known), indent=1) + "\n")
    recorded = tracking.accept(result, known, os.environ)
    new = known.acceptance.figures if known.acceptance else {}
    for name, value in sorted(new.items()):
        sys.stdout.write(f"{name}: {value:.4g} {known.figures[name].unit} is the reference from now on\n")
    sys.stdout.write(f"run {known.run_id} of {known.recorded}, accepted by {by}: {chosen.because}\n")
    sys.stdout.write(f"{target} (a plan carries it as `baseline`); MLflow: {recorded}\n")
    return 0


def _user() -> str:
    """The name of the user. Raises DocumentError for one without a name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise DocumentError([f"--by: this user has no name ({error}); say who decides"]) from error
