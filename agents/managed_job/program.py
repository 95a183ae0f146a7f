"""`job`: run a team's script in a container of a managed training service."""

import argparse
import os
from pathlib import Path

from agents.managed_job import run as job
from agents.managed_job.aws.folders import BASE, MOVED
from agents.managed_job.services import folders_of

NAME = "job"
HELP = "one node of a job of a managed training service; reads TRAINSTACK_* from the environment"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    where = f"the service's folder; default: {MOVED} from the environment, else {BASE}"
    parser.add_argument("--base", type=Path, help=where)


def main(chosen: argparse.Namespace) -> int:
    """Run the script in the working folder; its exit code."""
    return job.run(os.environ, folders_of(os.environ, chosen.base), Path.cwd())
