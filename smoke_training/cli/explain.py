"""`explain RESULT`: every check of a result in words."""

import argparse
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from smoke_training.cli.failing import refuse
from smoke_training.record import explanations, reading
from smoke_training.record.accepted import ResultError
from smoke_training.record.html.words import interval, number, with_unit

NAME = "explain"
HELP = "say in words what each check of a result measures, how it was judged and why"
WIDTH = 100


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("result", type=Path, help="a result document (JSON)")
    parser.add_argument("--check", help="only this check, by its id")


def main(chosen: argparse.Namespace) -> int:
    """Print the explanation; 0, or the exit code of ERROR when the result cannot be read."""
    try:
        result = reading.result(chosen.result)
    except ResultError as error:
        return refuse("the result cannot be explained", [str(error)])
    checks = [c for c in result["checks"] if chosen.check in (None, c["id"])]
    if not checks:
        known = ", ".join(c["id"] for c in result["checks"])
        return refuse(f"--check: got {chosen.check!r}", [f"must be one of {known}"])
    sys.stdout.write("\n".join(explained(result, checks)) + "\n")
    return 0


def explained(result: Mapping[str, Any], checks: list[Mapping[str, Any]]) -> Iterator[str]:
    """The page, line by line."""
    yield str(result["headline"])
    if result["partial"]:
        yield "A partial run: it validates no stack."
    worse = {True: "yes", False: "no", None: "not judged"}[result["regression"]]
    yield from _folded("Regression", f"{worse}. {result['regression_reason']}")
    for check in checks:
        yield ""
        yield from _check(check)


def _check(check: Mapping[str, Any]) -> Iterator[str]:
    words = explanations.of(check["id"])
    yield f"{check['id']}: {check['status']}" + ("" if check["required"] else " (does not gate)")
    yield from _folded("Measures", words.measures)
    yield from _folded("Judged", words.judged)
    yield from _folded("Here", check["message"])
    if check["measured"] is not None:
        yield from _folded("Measured", _measured(check["measured"]))
    if check["expected"] is not None:
        yield from _folded("Expected", _expected(check))
    for item in check["references"]:
        shown = (
            f"{with_unit(item['value'], item['unit'])} ({item['source']})"
            if item["value"] is not None
            else f"unknown: {item['reason']}"
        )
        yield from _folded(item["kind"].capitalize(), shown)
    for culprit in check["culprits"]:
        where = f" on node {culprit['node']}" if culprit["node"] else ""
        yield from _folded("Culprit", f"{culprit['kind']} {culprit['id']}{where}: {culprit['cause']}")
        for item in culprit["evidence"]:
            yield from _folded("because", item)
    if check["next_action"]:
        yield from _folded("Next", check["next_action"])


def _measured(found: Mapping[str, Any]) -> str:
    if found["value"] is None:
        return f"unknown: {found['reason']}"
    text = f"{with_unit(found['value'], found['unit'])} ({found['estimator']}, n = {number(found['n'])})"
    return f"{text}, 95 % interval {interval(found['ci'])}" if found["ci"] else text


def _expected(check: Mapping[str, Any]) -> str:
    wanted = check["expected"]
    if wanted["value"] is None:
        return f"unknown: {wanted['reason']}"
    limit = f", limit {number(wanted['floor'])}" if wanted["floor"] is not None else ""
    zone = f", indifferent within {interval(check['zone'])}" if check["zone"] else ""
    return f"{number(wanted['value'])}{limit}{zone} ({wanted['kind']}: {wanted['source']})"


def _folded(label: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"  {label + ':':<12}", subsequent_indent=" " * 14) or [
        f"  {label}:"
    ]
