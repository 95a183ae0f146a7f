"""`run --ranks N --out FILE`: all ranks on this machine."""

import argparse
import socket
import tempfile
from pathlib import Path

from smoke_training import plan as plans
from smoke_training.cli.failing import refuse
from smoke_training.phases import FULL, NAMES, QUICK
from smoke_training.runtime.ending import Place
from smoke_training.runtime.node import NodeRun

NAME = "run"
HELP = "all ranks on this machine"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--ranks", required=True, type=int, help="number of ranks, at least 1")
    parser.add_argument("--out", required=True, type=Path, help="where the result JSON goes")
    parser.add_argument("--full", action="store_true", help="every phase, with more samples")
    parser.add_argument("--only", help=f"only these phases, separated by commas: {', '.join(NAMES)}")


def main(chosen: argparse.Namespace) -> int:
    """Run all ranks here; the exit code of the verdict."""
    only = tuple(chosen.only.split(",")) if chosen.only else None
    problems = [f"--ranks: got {chosen.ranks}; must be at least 1"] if chosen.ranks < 1 else []
    problems += [
        f"--only: got {name!r}; must be one of {', '.join(NAMES)}" for name in only or () if name not in NAMES
    ]
    if problems:
        return refuse("the run cannot start", problems)
    with tempfile.TemporaryDirectory(prefix="smoke-") as scratch:
        place = Place(
            index=0,
            master_addr="127.0.0.1",
            master_port=_free_port(),
            work_dir=Path(scratch),
            result=chosen.out,
            termination=None,
        )
        return NodeRun(plans.local_plan(chosen.ranks, FULL if chosen.full else QUICK, only), place).run()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
