"""`node --plan FILE`: one node of a job, as the containers of a cluster run it."""

import argparse
import os
from pathlib import Path

from smoke_training import plan as plans
from smoke_training.cli import files
from smoke_training.runtime.facts import Place
from smoke_training.runtime.node import NodeRun

NAME = "node"
HELP = "one node of a job; reads NODE_RANK, MASTER_ADDR, WORK_DIR from the environment"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--plan", required=True, type=Path, help="the run plan (JSON)")


def main(chosen: argparse.Namespace) -> int:
    """Run this node's part; the exit code of the verdict on node 0."""
    asked = files.read(chosen.plan, lambda text: plans.located(plans.parse(text), os.environ))
    plan = plans.for_device(asked, os.environ)
    return NodeRun(plan, Place.from_environment(os.environ, plan.nodes)).run()
