"""`smoke accept RESULT`: make a run the reference of later ones for what no source has measured."""

import argparse
import datetime
import getpass
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from smoke_training import phases
from smoke_training.cli import files
from smoke_training.reader import DocumentError
from smoke_training.record import accepted, run_record, tracking
from smoke_training.statistics import baseline as baselines

NAME = "accept"
HELP = "make a run the reference of later ones"
SCHEMA = "trainstack.smoke-accept/1"
ACCEPTED = "accepted.json"  # beside the result; a plan can carry its content as `baseline`


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("result", type=Path, help="a result document (JSON)")
    parser.add_argument("--because", required=True, help="the reason, recorded with who and when")
    parser.add_argument("--by", help="who decides; default: the user")
    parser.add_argument("--out", type=Path, help=f"output file; default: RESULT.{ACCEPTED}")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def main(chosen: argparse.Namespace) -> int:
    """Record the decision in a file, and in MLflow where the run is recorded; 0."""
    if not chosen.because.strip():
        raise DocumentError(["--because: empty; must be the reason for which this run is the reference"])
    result, by = files.result(chosen.result), chosen.by or _user()
    at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    try:
        known = accepted.accept(result, by=by, at=at, because=chosen.because)
    except DocumentError as error:
        raise DocumentError([*error.problems, *_needed(result)]) from error
    target = chosen.out or run_record.beside(chosen.result, ACCEPTED)
    files.write(target, json.dumps(baselines.render(known), indent=1) + "\n")
    recorded = tracking.accept(result, known, os.environ)
    new = known.acceptance.figures if known.acceptance else {}
    if chosen.format == "json":
        figures = [{"id": name, "value": new[name], "unit": known.figures[name].unit} for name in sorted(new)]
        document = {
            "schema": SCHEMA, "run_id": known.run_id, "recorded": known.recorded, "by": by, "at": at,
            "because": chosen.because, "figures": figures, "file": str(target), "mlflow": recorded,
        }  # fmt: skip
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return 0
    for name, value in sorted(new.items()):
        sys.stdout.write(f"{name}: {value:.4g} {known.figures[name].unit} is the reference from now on\n")
    if not new:
        sys.stdout.write("no figure needed a reference: all of this run had one\n")
    sys.stdout.write(f"run {known.run_id} of {known.recorded}, accepted by {by}: {chosen.because}\n")
    sys.stdout.write(f"{target} (a plan carries it as `baseline`); MLflow: {recorded}\n")
    return 0


def _needed(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a run that cannot be accepted lacks: phases, and figures that could be a reference."""
    depth, only = result["plan"]["depth"], result["plan"]["phases"]
    if absent := sorted({*phases.chosen(depth, None)} - {*phases.chosen(depth, only)}):
        yield f"needed: all phases of a {depth} run; this one left out {', '.join(absent)}"
    new, comparable = accepted.without_reference(result), result["comparable"]
    if not new and not comparable["figures"]:
        left = ", ".join(comparable["left_out"])
        disturbed = f"; disturbed by other work here: {left}" if left else ""
        yield f"needed: a figure with an interval of one of {', '.join(baselines.BETTER)}{disturbed}"
    for check in result["checks"]:
        unknown = check["required"] and (check["expected"] or {}).get("kind") == "unknown"
        if unknown and check["status"] == "INCONCLUSIVE" and check["id"] not in new:
            yield f"needed: {check['id']} with a value and an interval; here: {check['message']}"


def _user() -> str:
    """The name of the user. Raises DocumentError for one without a name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise DocumentError([f"--by: this user has no name ({error}); say who decides"]) from error
