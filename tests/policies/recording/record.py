"""Records the examples of the rules: `python -m tests.policies.recording.record [RULE...]`.

Each is made by the real engine in an emulated cloud of its own. Without arguments: those that have changed.
"""

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infra.discovery import gathered
from infra.engine.install import require
from infra.engine.stack import EngineStack
from rehearsal.client import Rehearsal
from rehearsal.projects.project import read
from rehearsal.projects.workspace import of_project
from tests.policies.recording import recordings
from tests.policies.recording.example import Example, Resources, plain

PROGRAM = Path(__file__).with_name("program")
CACHE = Path(__file__).resolve().parents[3] / ".trainstack" / "cache"
EXAMPLES: Mapping[str, Example] = gathered("tests.policies.examples", "EXAMPLES")
# What a reader of a record needs; the rest is about versions.
_KEPT = (
    *("urn", "custom", "id", "type", "inputs", "outputs", "parent", "dependencies", "provider", "protect"),
    *("initErrors", "modified"),
)


def made(home: Path, verdict: str, resources: Resources) -> dict[str, Any]:
    """The export of a stack of these resources, made in a new home; of the fields that matter here."""
    home.mkdir(parents=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    (home / "cache").symlink_to(CACHE)
    rehearsal, file = Rehearsal(home / "rehearsal"), home / "example.json"
    file.write_text(json.dumps(plain(resources)))
    try:
        workspace = of_project(read(PROGRAM), verdict, rehearsal, require().path)
        engine = EngineStack(verdict, {**workspace.variables, "EXAMPLE": str(file)}, workspace.folder)
        outcome = engine.up()
        rows = engine.resources()
    finally:
        rehearsal.stop()
    if not outcome.succeeded:
        raise RuntimeError(f"the example cannot be made: {' '.join(outcome.errors)}")
    return {"version": 3, "deployment": {"resources": [trimmed(row) for row in rows]}}


def trimmed(row: Mapping[str, Any]) -> dict[str, Any]:
    """A resource of an export with what a reader of a record needs."""
    kept = {key: row[key] for key in _KEPT if row.get(key)}
    sources = {key: urns for key, urns in row.get("propertyDependencies", {}).items() if urns}
    return {**kept, **({"propertyDependencies": sources} if sources else {})}


def record(rule: str, folder: Path) -> dict[str, Any]:
    """The record of a rule's example, made below a folder."""
    example = EXAMPLES[rule]
    return {
        "digest": example.digest,
        "pass": made(folder / f"{rule}-pass", "pass", example.passing),
        "fail": made(folder / f"{rule}-fail", "fail", example.failing),
    }


def changed() -> list[str]:
    """The rules whose record is not of their example as it is."""
    return [rule for rule, example in EXAMPLES.items() if recordings.digest(rule) != example.digest]


def main(rules: Sequence[str]) -> None:
    """Record the examples of these rules, or of those that have changed."""
    with tempfile.TemporaryDirectory() as folder:
        for rule in rules or changed():
            recordings.add({rule: record(rule, Path(folder))}, EXAMPLES)
            print(rule)  # noqa: T201 - a script


if __name__ == "__main__":
    main(sys.argv[1:])
