"""`run --ranks N --out FILE`: run all ranks on this machine."""

import argparse
import shutil
import socket
import tempfile
from pathlib import Path

from smoke_training import files
from smoke_training.model import EXIT_CODES, Verdict
from smoke_training.phases import BURN, FULL, QUICK
from smoke_training.phases import NAMES as PHASES
from smoke_training.plan import Plan, local_plan
from smoke_training.reader import DocumentError
from smoke_training.runtime import output
from smoke_training.runtime.facts import NodeSettings
from smoke_training.runtime.node import NodeRun

NAMES = tuple(name for name in PHASES if name != BURN)  # a depth of its own
UNITS = {"s": 1, "m": 60, "h": 3600}
LONGEST_S = 82800
NAME = "run"
HELP = "all ranks on this machine"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--ranks", required=True, type=count, help="number of ranks, at least 1")
    text = "output file of the result (JSON); missing folders are created"
    parser.add_argument("--out", required=True, type=Path, help=text)
    add_phases(parser)


def add_phases(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the choice and the length of phases."""
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument("--full", action="store_true", help="every phase, with more samples")
    depth.add_argument("--burn", type=_duration, help="sustained work only, for a time: 15m, 900s, 1h")
    only = f"only these phases, separated by commas: {', '.join(NAMES)}"
    parser.add_argument("--only", type=_phases, help=only)


def count(text: str) -> int:
    """Parse a number of ranks."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text}; must be a whole number, at least 1")
    return int(text)


def local(chosen: argparse.Namespace) -> Plan:
    """Return the plan of a run on this machine, from `--ranks`, `--full`, `--burn` and `--only`."""
    depth = BURN if chosen.burn else FULL if chosen.full else QUICK
    return local_plan(chosen.ranks, depth, chosen.only, chosen.burn)


def main(chosen: argparse.Namespace) -> int:
    """Run all ranks here; the exit code of the verdict. The scratch folder of a run that failed is kept."""
    if chosen.out.is_dir():
        raise DocumentError([f"--out: {chosen.out} is a folder; name a file"])
    if chosen.burn and chosen.only:
        raise DocumentError(["--only: a burn has no other phases; leave out one of the two"])
    scratch, out = Path(tempfile.mkdtemp(prefix="smoke-")), chosen.out
    # Written several times, with files beside it: a device or a pipe gets the last result alone.
    result = out if files.replaceable(out) else scratch / "result.json"
    place = NodeSettings(
        index=0,
        master_addr="127.0.0.1",
        master_port=_free_port(),
        work_dir=scratch,
        result=result,
        termination=None,
    )
    code = NodeRun(local(chosen), place).run()
    try:
        if result != out and result.exists():
            files.write_durably(out, result.read_bytes())
    finally:
        if code in (EXIT_CODES[Verdict.FAIL], EXIT_CODES[Verdict.ERROR]) and place.scratch.exists():
            output.say(f"The scratch folder is {place.scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    return code


def _duration(text: str) -> float:
    """Parse a whole number with the unit s, m or h."""
    number, unit = text[:-1], UNITS.get(text[-1:], 0)
    if not number.isdecimal() or not 0 < int(number) * unit <= LONGEST_S:
        fix = f"{text}s or {text}m" if text.isdecimal() else "15m, 900s, 1h"
        raise argparse.ArgumentTypeError(f"got {text}; must be a time with its unit, up to 23h: {fix}")
    return float(int(number) * unit)


def _phases(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := [f"got {name!r}" for name in names if name not in NAMES]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}; must be one of {', '.join(NAMES)}")
    return names


def _free_port() -> int:
    """Return a port that is free on every address: torch's store listens on all of them."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
