"""`judge SAMPLES`: the verdict again, offline, from the samples of a run."""

import argparse
import sys
from pathlib import Path

from smoke_training import evidence, verdict
from smoke_training import plan as plans
from smoke_training.cli.failing import refuse
from smoke_training.evidence.world import Planned
from smoke_training.model import EXIT_CODES
from smoke_training.plan import PlanError
from smoke_training.record import termination

NAME = "judge"
HELP = "judge recorded samples again, offline"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("samples", type=Path, help="the samples file of a run (JSON lines)")
    parser.add_argument("--plan", type=Path, help="judge by this plan instead of the recorded one")


def main(chosen: argparse.Namespace) -> int:
    """Print what the termination message would say; the exit code of the verdict."""
    path: Path = chosen.samples
    try:
        found = evidence.parse(path.read_text(errors="replace").splitlines())
        recorded = found.of(Planned)
        if chosen.plan is None and recorded is None:
            rule = "its first line must be the plan of the run; give one by --plan"
            return refuse(f"{path}: no plan in the samples", [rule, *found.unreadable])
        text = chosen.plan.read_text() if chosen.plan else recorded.document if recorded else ""
        plan = plans.parse(text)
    except PlanError as error:
        return refuse(f"{chosen.plan or path}: {len(error.problems)} problems in the plan", error.problems)
    except OSError as error:
        return refuse("the samples cannot be read", [str(error)])
    judged = verdict.judge(plan, found)
    sys.stdout.write(termination.termination_message(judged) + "\n")
    return EXIT_CODES[judged.verdict]
