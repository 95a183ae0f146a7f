"""`node --plan FILE`: run one node of a job; the command of a cluster's containers."""

import argparse
import os
from pathlib import Path

from smoke_training import plan as plans
from smoke_training.cli import files
from smoke_training.runtime.facts import NodeSettings
from smoke_training.runtime.node import NodeRun

NAME = "node"
HELP = "one node of a job; reads NODE_RANK, MASTER_ADDR, WORK_DIR from the environment"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--plan", required=True, type=Path, help="the run plan (JSON)")


def main(chosen: argparse.Namespace) -> int:
    """Run this node's part; the exit code of the verdict on node 0."""
    requested = files.read(chosen.plan, lambda text: plans.located(plans.parse(text), os.environ))
    plan = plans.for_device(requested, os.environ)
    return NodeRun(plan, NodeSettings.from_environment(os.environ, plan.nodes)).run()
