"""`judge SAMPLES`: judge the recorded samples of a run again, offline; or the output of another program."""

import argparse
import sys
from pathlib import Path

from smoke_training import evidence, verdict
from smoke_training import plan as plans
from smoke_training.cli import files
from smoke_training.cli.run import count
from smoke_training.evidence.world import PlanText
from smoke_training.fabric import Fabric
from smoke_training.foreign import judgement, nccl_tests, step_log
from smoke_training.foreign.judgement import Claim
from smoke_training.model import EXIT_CODES, Judgement
from smoke_training.reader import DocumentError
from smoke_training.record import run_record, termination

NAME = "judge"
HELP = "judge recorded samples again, or the output of nccl-tests or of a training loop, offline"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("samples", nargs="?", type=Path, help="the samples file of a run (JSON lines)")
    source.add_argument("--nccl-tests", type=Path, metavar="FILE", help="output of nccl-tests; - is stdin")
    source.add_argument("--step-log", type=Path, metavar="FILE", help="log with steps, as of torchtitan")
    parser.add_argument("--plan", type=Path, help="judge by this plan instead of the recorded one")
    parser.add_argument("--machine", help="machine type of the nodes, as p5.48xlarge")
    parser.add_argument("--nodes", type=count, help="number of nodes, where no line names the ranks")
    parser.add_argument("--fabric", type=Fabric, choices=list(Fabric), help="network between the nodes")
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="earlier log of the same job, for --step-log"
    )


def main(chosen: argparse.Namespace) -> int:
    """Print the termination message; return the exit code of the verdict."""
    judged = _foreign(chosen) or _recorded(chosen)
    sys.stdout.write(termination.termination_message(judged) + "\n")
    return EXIT_CODES[judged.verdict]


def _foreign(chosen: argparse.Namespace) -> Judgement | None:
    """The judgement of another program's output; None where samples of our own are given."""
    path = chosen.nccl_tests or chosen.step_log
    if path is None:
        return None
    if chosen.plan is not None:
        raise DocumentError([f"--plan: {path} is judged without one; leave it out"])
    try:
        if chosen.nccl_tests is not None:
            claim = Claim(machine=chosen.machine, nodes=chosen.nodes, fabric=chosen.fabric)
            return judgement.judge(nccl_tests.parse(files.lines(path, "replace")), claim)
        earlier = chosen.against and step_log.parse(files.lines(chosen.against, "replace"))
        return step_log.judge(step_log.parse(files.lines(path, "replace")), earlier)
    except DocumentError as error:
        raise DocumentError(
            [problem if str(path) in problem else f"{path}: {problem}" for problem in error.problems]
        ) from error


def _recorded(chosen: argparse.Namespace) -> Judgement:
    found = evidence.parse(files.lines(chosen.samples))
    if found.unreadable and not found.records:
        rule = f"name the {run_record.SAMPLES} of a run; other programs' output: --nccl-tests, --step-log"
        raise DocumentError([f"{chosen.samples}: not a samples file; {rule}"])
    recorded = found.of(PlanText)
    if chosen.plan is not None:
        plan = files.planned(chosen.plan)
    elif recorded is not None:
        plan = plans.parse(recorded.document)
    else:
        rule = "its first line must be the plan of the run; give one by --plan"
        raise DocumentError([f"{chosen.samples}: no plan in the samples; {rule}", *found.unreadable])
    return verdict.judge(plan, found)
