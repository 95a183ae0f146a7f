"""`node --plan FILE`: one node of a job, as the containers of a cluster run it."""

import argparse
import os
from pathlib import Path

from smoke_training import plan as plans
from smoke_training.cli.failing import refuse
from smoke_training.plan import PlanError
from smoke_training.runtime.ending import Place
from smoke_training.runtime.node import NodeRun

NAME = "node"
HELP = "one node of a job; reads NODE_RANK, MASTER_ADDR, WORK_DIR from the environment"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--plan", required=True, type=Path, help="the run plan (JSON)")


def main(chosen: argparse.Namespace) -> int:
    """Run this node's part; the exit code of the verdict on node 0."""
    path: Path = chosen.plan
    try:
        plan = plans.located(plans.parse(path.read_text()), os.environ)
        place = Place.from_environment(os.environ, plan.nodes)
    except PlanError as error:
        return refuse(f"{path}: {len(error.problems)} problems in the plan", error.problems)
    except (OSError, ValueError) as error:
        return refuse("the node cannot start", str(error).splitlines())
    return NodeRun(plan, place).run()
