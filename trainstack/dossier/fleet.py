"""One document about many stacks, from the documents of their reports."""

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from infra.errors import Problem, UserError
from trainstack.dossier.document import SCHEMA as OF_STACK

SCHEMA = "trainstack.report-fleet/1"
_LARGEST = 64 << 20
_FIX = "Name files that `trainstack report` wrote beside its pages, or a folder with them."


def read(paths: Sequence[Path]) -> list[tuple[str, Mapping[str, Any]]]:
    """Name and document of each report: files, and those in folders. Raises UserError for any other file."""
    files = dict.fromkeys(file for path in paths for file in _files(path))
    problems, found = list[Problem](), list[tuple[str, Mapping[str, Any]]]()
    for file in files:
        try:
            found.append((file.stem, _report(file)))
        except ValueError as error:
            problems.append(Problem("--fleet", str(file), str(error), _FIX, code="report-not-readable"))
    if not files:
        rule = "no report is in it"
        problems.append(
            Problem("--fleet", ", ".join(map(str, paths)), rule, _FIX, code="report-not-readable")
        )
    if problems:
        raise UserError(problems)
    return found


def _files(path: Path) -> Iterator[Path]:
    """A file; of a folder the reports in it, without other JSON files."""
    if not path.is_dir():
        yield path
        return
    for file in sorted(path.rglob("*.json")):
        try:
            _report(file)
        except ValueError:
            continue
        yield file


def _report(file: Path) -> Mapping[str, Any]:
    """The document in a file. Raises ValueError with the rule that it breaks."""
    try:
        if file.stat().st_size > _LARGEST:
            raise ValueError(f"is larger than {_LARGEST >> 20} MiB")
        found = json.loads(file.read_bytes())
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    except (RecursionError, json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError("is no JSON") from None
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema != OF_STACK:
        raise ValueError(f"is no report of a stack ({OF_STACK})" + (f", but {schema}" if schema else ""))
    try:
        _row("", found)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"is an incomplete report: {error}") from None
    return dict(found)


def document(reports: Sequence[tuple[str, Mapping[str, Any]]], at: datetime.datetime) -> dict[str, Any]:
    """The stacks, those that need attention first, and their sums."""
    rows = [_row(name, report) for name, report in reports]
    rows.sort(key=lambda row: (-len(row["attention"]), row["stack"], row["file"]))
    priced = [row for row in rows if row["expected_usd"] is not None]
    return {
        "schema": SCHEMA,
        "at": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "stacks": rows,
        "need_attention": sum(bool(row["attention"]) for row in rows),
        "without_price": len(rows) - len(priced),
        **{
            f"{name}_usd": sum(row[f"{name}_usd"] for row in priced)
            for name in ("minimum", "expected", "maximum", "budget")
        },
        "violations": sum(row["violations"] or 0 for row in rows),
        "validated": sum(row["validation"] == "passed" for row in rows),
        "deployed": sum(row["state"] == "deployed" for row in rows),
        "unknown": sum(row["state"] == "unknown" for row in rows),
    }


def _row(name: str, report: Mapping[str, Any]) -> dict[str, Any]:
    about, cost, policy = report["about"] or {}, report["cost"], report["policy"]
    drift, versions = report["drift"], report["versions"]
    row: dict[str, Any] = {
        "file": name,
        "stack": report["stack"],
        "at": report["at"],
        "rehearsed": report["rehearsed"],
        "state": report["state"],
        **{key: about.get(key, "") for key in ("cloud", "region", "environment", "owner")},
        **{
            f"{key}_usd": cost[f"{key}_usd"] if cost["known"] else None
            for key in ("minimum", "expected", "maximum", "budget")
        },
        "validation": report["validation"]["verdict"],
        "policy": policy["verdict"],
        "violations": policy["violations"] if policy["known"] else None,
        "drifted": len(drift["differences"]) if drift["known"] else None,
        "behind": versions["behind"] if versions["known"] else None,
        "open_to_all": sum(
            one["open_to_all"] and one["direction"] == "in" for one in report["architecture"]["openings"]
        ),
        "untested": len(report["untested"]),
    }
    return {**row, "attention": [*_attention(row, report)]}


def _attention(row: Mapping[str, Any], report: Mapping[str, Any]) -> Iterator[str]:
    if report["problems"]:
        yield "its stack file breaks rules"
    if row["state"] == "unknown":
        yield "its state could not be read"
    if row["state"] == "unfinished":
        yield "its last deployment has not finished"
    if report["cost"]["known"] and report["cost"]["over_budget"]:
        yield "its expected cost is above the budget"
    if row["state"] == "deployed" and row["validation"] != "passed":
        yield f"validation: {row['validation']}"
    if row["policy"] in ("violations", "expired waivers"):
        yield f"policies: {row['policy']}"
    if row["drifted"]:
        yield "it has drifted"
    if row["open_to_all"]:
        yield "it is open to the whole internet"
