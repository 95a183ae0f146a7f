"""Store of the recorded exports: a line per distinct resource, and a line of references per example.

A reference is the start of the SHA-256 of a resource's line, so an edited resource is no longer found.
"""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

VERDICTS = ("pass", "fail")
_FOLDER = Path(__file__).resolve().parents[1] / "recorded"
_EXAMPLES, _RESOURCES = "examples.jsonl", "resources.jsonl"
_LENGTH = 10  # digits of a reference
Record = Mapping[str, Any]
"""`digest` of an example, and its export per verdict."""


def keys() -> list[str]:
    """The recorded examples, sorted."""
    return sorted(_examples(_FOLDER))


def digest(key: str) -> str | None:
    """Digest of the example that was recorded; None without a record."""
    example = _examples(_FOLDER).get(key)
    return None if example is None else str(example["digest"])


def export(key: str, verdict: str, folder: Path = _FOLDER) -> dict[str, Any]:
    """A new copy of what the engine exported for the passing or the failing part of an example."""
    lines = _resources(folder)
    rows = [json.loads(lines[reference]) for reference in _examples(folder)[key][verdict]]
    return {"version": 3, "deployment": {"resources": rows}}


def rows(key: str, verdict: str) -> list[dict[str, Any]]:
    """The resources of an export, without stack and providers."""
    found = export(key, verdict)["deployment"]["resources"]
    return [row for row in found if not row["type"].startswith("pulumi:")]


def add(records: Mapping[str, Record], known: Iterable[str], folder: Path = _FOLDER) -> None:
    """Store records, and drop those of examples that are not known. Keeps all others unchanged."""
    examples, resources = dict(_examples(folder)), dict(_resources(folder))
    for key, record in records.items():
        example = {"key": key, "digest": record["digest"]}
        for verdict in VERDICTS:
            lines = [_line(row) for row in record[verdict]["deployment"]["resources"]]
            resources |= {_reference(line): line for line in lines}
            example[verdict] = [_reference(line) for line in lines]
        examples[key] = example
    kept = [examples[key] for key in sorted({*known} & examples.keys())]
    used = {reference for example in kept for verdict in VERDICTS for reference in example[verdict]}
    _write(folder / _EXAMPLES, [_line(example) for example in kept])
    _write(folder / _RESOURCES, sorted(resources[reference] for reference in used))
    _examples.cache_clear()
    _resources.cache_clear()


@functools.cache
def _examples(folder: Path) -> Mapping[str, Any]:
    return {example["key"]: example for example in map(json.loads, _lines(folder / _EXAMPLES))}


@functools.cache
def _resources(folder: Path) -> Mapping[str, str]:
    return {_reference(line): line for line in _lines(folder / _RESOURCES)}


def _reference(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()[:_LENGTH]


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def _write(file: Path, lines: Iterable[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines))
