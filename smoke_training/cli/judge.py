"""`judge SAMPLES`: judge the recorded samples of a run again, offline."""

import argparse
import sys
from pathlib import Path

from smoke_training import evidence, verdict
from smoke_training import plan as plans
from smoke_training.cli import files
from smoke_training.evidence.world import PlanText
from smoke_training.model import EXIT_CODES
from smoke_training.reader import DocumentError
from smoke_training.record import run_record, termination

NAME = "judge"
HELP = "judge recorded samples again, offline"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("samples", type=Path, help="the samples file of a run (JSON lines)")
    parser.add_argument("--plan", type=Path, help="judge by this plan instead of the recorded one")


def main(chosen: argparse.Namespace) -> int:
    """Print the termination message; return the exit code of the verdict."""
    found = evidence.parse(files.text(chosen.samples).splitlines())
    if found.unreadable and not found.records:
        raise DocumentError([f"{chosen.samples}: not a samples file; name the {run_record.SAMPLES} of a run"])
    recorded = found.of(PlanText)
    if chosen.plan is not None:
        plan = files.planned(chosen.plan)
    elif recorded is not None:
        plan = plans.parse(recorded.document)
    else:
        rule = "its first line must be the plan of the run; give one by --plan"
        raise DocumentError([f"{chosen.samples}: no plan in the samples; {rule}", *found.unreadable])
    judged = verdict.judge(plan, found)
    sys.stdout.write(termination.termination_message(judged) + "\n")
    return EXIT_CODES[judged.verdict]
