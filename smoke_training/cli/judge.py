"""`judge SAMPLES`: judge the recorded samples of a run again, offline; or the output of another program."""

import argparse
import json
import sys
from pathlib import Path

from smoke_training import evidence, verdict
from smoke_training import plan as plans
from smoke_training.cli import files
from smoke_training.cli.run import count
from smoke_training.evidence.world import PlanText
from smoke_training.fabric import EARLIER, Fabric
from smoke_training.foreign import judgement, nccl_tests, step_log
from smoke_training.foreign.judgement import Claim
from smoke_training.model import EXIT_CODES, Judgement
from smoke_training.reader import DocumentError
from smoke_training.record import document, run_record, termination

SCHEMA = "trainstack.smoke-judge/1"
OF = {"plan": "samples", "against": "step_log"} | dict.fromkeys(("machine", "nodes", "fabric"), "nccl_tests")
NAME = "judge"
HELP = "judge recorded samples again, or the output of nccl-tests or of a training loop, offline"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("samples", nargs="?", type=Path, help="the samples file of a run (JSON lines)")
    source.add_argument("--nccl-tests", type=Path, metavar="FILE", help="output of nccl-tests; - is stdin")
    source.add_argument("--step-log", type=Path, metavar="FILE", help="log with steps, as of torchtitan")
    parser.add_argument("--plan", type=Path, help="judge by this plan instead of the recorded one")
    parser.add_argument("--machine", help="for --nccl-tests: machine type of the nodes, as p5.48xlarge")
    parser.add_argument("--nodes", type=count, help="for --nccl-tests: nodes, where no line names the ranks")
    names, network = [*map(str, Fabric)], "network between them, the same"
    parser.add_argument("--fabric", type=lambda name: EARLIER.get(name, name), choices=names, help=network)
    parser.add_argument("--against", type=Path, metavar="FILE", help="for --step-log: earlier log of the job")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def main(chosen: argparse.Namespace) -> int:
    """Print the termination message, or all checks as JSON; return the exit code of the verdict."""
    given = {name for name in ("samples", "nccl_tests", "step_log", *OF) if getattr(chosen, name) is not None}
    if wrong := [(name, of) for name, of in OF.items() if name in given and of not in given]:
        words = {"samples": "a samples file", "nccl_tests": "--nccl-tests", "step_log": "--step-log"}
        raise DocumentError([f"--{name}: goes with {words[of]} alone; leave it out" for name, of in wrong])
    judged = _recorded(chosen) if "samples" in given else _foreign(chosen)
    text = termination.termination_message(judged)
    if chosen.format == "json":
        text = json.dumps({"schema": SCHEMA, **document.of_judgement(judged)}, indent=2)
    sys.stdout.write(text + "\n")
    return EXIT_CODES[judged.verdict]


def _foreign(chosen: argparse.Namespace) -> Judgement:
    """The judgement of another program's output."""
    path = chosen.nccl_tests or chosen.step_log
    try:
        if chosen.nccl_tests is not None:
            fabric = Fabric(chosen.fabric) if chosen.fabric else None
            claim = Claim(machine=chosen.machine, nodes=chosen.nodes, fabric=fabric)
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
