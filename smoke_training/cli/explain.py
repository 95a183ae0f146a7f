"""`explain RESULT`: explain every check of a result."""

import argparse
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from smoke_training.cli import files
from smoke_training.reader import DocumentError
from smoke_training.record import formatting
from smoke_training.record.explanations import EXPLANATIONS, UNKNOWN

NAME = "explain"
HELP = "explain what each check of a result measures, how it was judged and why"
WIDTH = 100


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("result", type=Path, help="a result document (JSON)")
    parser.add_argument("--check", help="only this check, by its id")


def main(chosen: argparse.Namespace) -> int:
    """Print the explanation; 0."""
    result = files.result(chosen.result)
    checks = [c for c in result["checks"] if chosen.check in (None, c["id"])]
    if not checks:
        known = ", ".join(c["id"] for c in result["checks"])
        raise DocumentError([f"--check: got {chosen.check!r}; must be one of {known}"])
    sys.stdout.write("\n".join(explained(result, checks)) + "\n")
    return 0


def explained(result: Mapping[str, Any], checks: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the explanation, line by line."""
    yield str(result["headline"])
    if result["partial"]:
        yield "A partial run: it validates no stack."
    worse = {True: "yes", False: "no", None: "not judged"}[result["regression"]]
    yield from _folded("Regression", f"{worse}. {result['regression_reason']}")
    for check in checks:
        yield ""
        yield from _check(check)


def _check(check: Mapping[str, Any]) -> Iterator[str]:
    measures, judged = EXPLANATIONS.get(check["id"], UNKNOWN)
    yield f"{check['id']}: {check['status']}" + ("" if check["required"] else " (does not gate)")
    yield from _folded("Measures", measures)
    yield from _folded("Judged", judged)
    yield from _folded("Here", check["message"])
    for label, parts in (("Measured", formatting.measured(check)), ("Expected", formatting.expected(check))):
        if parts:
            yield from _folded(label, formatting.joined(parts))
    for item in check["references"]:
        yield from _folded(item["kind"].capitalize(), formatting.joined(formatting.reference(item)))
    for culprit in check["culprits"]:
        where = f" on node {culprit['node']}" if culprit["node"] else ""
        yield from _folded("Culprit", f"{culprit['kind']} {culprit['id']}{where}: {culprit['cause']}")
        for item in culprit["evidence"]:
            yield from _folded("because", item)
    if check["next_action"]:
        yield from _folded("Next", check["next_action"])


def _folded(label: str, text: str) -> list[str]:
    start = f"  {label + ':':<12}"
    return textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=" " * 14) or [start.rstrip()]
