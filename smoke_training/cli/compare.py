"""`compare A B`: is run B worse than run A? Figure by figure, with intervals.

Exit codes: 0 no figure of B is certainly worse, 1 at least one is, 2 nothing could be decided, 3 the runs
cannot be compared (another fingerprint, another schema, an unreadable file).
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from smoke_training.cli import files
from smoke_training.model import EXIT_CODES, Verdict
from smoke_training.reader import DocumentError
from smoke_training.record import accepted
from smoke_training.record.formatting import interval, number
from smoke_training.statistics import baseline as baselines
from smoke_training.statistics.baseline import LIMIT, Comparison

NAME = "compare"
HELP = "compare two results figure by figure"


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("old", type=Path, help="the result to compare with (JSON)")
    parser.add_argument("new", type=Path, help="the result to judge (JSON)")


def main(chosen: argparse.Namespace) -> int:
    """Print the comparison; the exit codes are in the module docstring."""
    old, new = files.result(chosen.old), files.result(chosen.new)
    before, after = accepted.baseline_of(old), accepted.baseline_of(new)
    if unlike := baselines.differences(after.fingerprint, before.fingerprint):
        shown = (
            "; ".join(unlike).replace("this run", str(chosen.new)).replace("the baseline", str(chosen.old))
        )
        raise DocumentError([f"the fingerprints differ, so the figures do not compare: {shown}"])
    found = baselines.compare(before, after.figures)
    for path, result in ((chosen.old, old), (chosen.new, new)):
        sys.stdout.write(f"{path}: {result['verdict']}, run {result['run_id']} of {result['started']}\n")
    sys.stdout.write("\n".join([*table(found), *left_out(old, new)]) + "\n")
    return EXIT_CODES[outcome(found)]


def outcome(found: Sequence[Comparison]) -> Verdict:
    """FAIL for a certain regression, INCONCLUSIVE where no figure can be judged, else PASS."""
    claimed = [item for item in found if item.regressed is not None]
    if any(item.regressed for item in claimed):
        return Verdict.FAIL
    return Verdict.PASS if claimed else Verdict.INCONCLUSIVE


def table(found: Sequence[Comparison]) -> Iterator[str]:
    """The comparison as lines of text; ratios are of performance, so that below 1 is worse."""
    if not found:
        yield "No figure of both results can be compared."
        return
    yield f"{'figure':<30}{'before':>14}{'now':>14}  {'performance':<31}answer"
    for item in found:
        ratio = f"{number(item.ratio)}x ({interval(item.ci)})"
        yield (
            f"{item.id:<30}{number(item.old.value):>14}{number(item.new.value):>14}  {ratio:<31}"
            f"{answer(item)} [{item.unit}, {item.better} is better]"
        )
    yield f"Intervals are 95 %; a regression is a whole interval (one-sided 1e-4) below {LIMIT}."


def left_out(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """List the figures not compared because either run was disturbed."""
    names = dict.fromkeys(name for run in (old, new) for name in run["comparable"].get("left_out", ()))
    if names:
        yield f"Left out, because ranks waited for CPUs that others held: {', '.join(names)}."


def answer(item: Comparison) -> str:
    """Return the conclusion of one comparison."""
    if item.regressed:
        return "REGRESSION"
    if not item.significant:
        return "no significant difference"
    direction = "better" if item.ratio > 1 else "worse"
    if item.regressed is None:
        return f"{direction} by more than both runs' own noise, but {item.reason}"
    return f"significantly {direction}"
