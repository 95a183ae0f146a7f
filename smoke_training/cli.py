"""Command line: `node --plan FILE` inside a job, `run --ranks N --out FILE` on one machine."""

import argparse
import os
import socket
import sys
import tempfile
from pathlib import Path

from smoke_training import plan as plans
from smoke_training.model import EXIT_CODES, Verdict
from smoke_training.plan import PlanError
from smoke_training.runtime.node import NodeRun, Place


def main(arguments: list[str] | None = None) -> int:
    """Run one command; exit codes 0 PASS, 1 FAIL, 2 INCONCLUSIVE, 3 ERROR, 4 SKIPPED."""
    parser = argparse.ArgumentParser(prog="smoke_training", description=(__doc__ or "").strip())
    commands = parser.add_subparsers(dest="command", required=True)
    node = commands.add_parser(
        "node", help="one node of a job; reads NODE_RANK, MASTER_ADDR, WORK_DIR from the environment"
    )
    node.add_argument("--plan", required=True, type=Path, help="the run plan (JSON)")
    run = commands.add_parser("run", help="all ranks on this machine")
    run.add_argument("--ranks", required=True, type=int, help="number of ranks, at least 1")
    run.add_argument("--out", required=True, type=Path, help="where the result JSON goes")
    chosen = parser.parse_args(arguments)
    if chosen.command == "node":
        return _node(chosen.plan)
    if chosen.ranks < 1:
        parser.error(f"--ranks: got {chosen.ranks}; must be at least 1")
    return _run(chosen.ranks, chosen.out)


def _node(path: Path) -> int:
    try:
        plan = plans.parse(path.read_text())
        place = Place.from_environment(os.environ, plan.nodes)
    except PlanError as error:
        return _refuse(f"{path}: {len(error.problems)} problems in the plan", error.problems)
    except (OSError, ValueError) as error:
        return _refuse("the node cannot start", str(error).splitlines())
    return NodeRun(plan, place).run()


def _run(ranks: int, out: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="smoke-") as scratch:
        place = Place(
            index=0,
            master_addr="127.0.0.1",
            master_port=_free_port(),
            work_dir=Path(scratch),
            result=out,
            termination=None,
        )
        return NodeRun(plans.local_plan(ranks), place).run()


def _refuse(summary: str, problems: list[str]) -> int:
    """Say what is wrong, in the termination message too, and report ERROR."""
    text = "\n".join([f"ERROR {summary}", *problems])
    sys.stderr.write(text + "\n")
    message = os.environ.get("TERMINATION_MESSAGE_PATH")
    if message:
        Path(message).write_text(text[:4000])
    return EXIT_CODES[Verdict.ERROR]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
