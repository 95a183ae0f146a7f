"""Read the outcome of a run in the laboratory."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.system import LabError


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run left: exit codes and termination messages by node, the result, every evidence line."""

    exit_codes: dict[int, int]
    wall_s: float
    result: dict[str, Any] | None
    samples: list[dict[str, Any]]
    terminations: dict[int, str]
    outputs: dict[int, str]
    logs: dict[int, str]  # of the ranks
    proofs: list[str]

    @property
    def verdict(self) -> str | None:
        """The result's verdict; None without a result."""
        return None if self.result is None else str(self.result["verdict"])

    def check(self, name: str) -> dict[str, Any]:
        """One check of the result."""
        for item in self.result["checks"] if self.result else ():
            if item["id"] == name:
                found: dict[str, Any] = item
                return found
        raise LabError(f"the result has no check {name}: {self.describe()}")

    def culprits(self) -> list[tuple[str, str, str, str]]:
        """(check, kind, id, cause) of every accusation in failed checks."""
        return [
            (item["id"], accused["kind"], accused["id"], accused["cause"])
            for item in (self.result["checks"] if self.result else ())
            if item["status"] == "FAIL"
            for accused in item["culprits"]
        ]

    def undecided(self) -> list[tuple[str, str]]:
        """(check, status) of every required check that neither passed nor failed."""
        return [
            (item["id"], item["status"])
            for item in (self.result["checks"] if self.result else ())
            if item["required"] and item["status"] not in ("PASS", "FAIL")
        ]

    def describe(self) -> str:
        """Everything a reader of a failed assertion wants to see."""
        lines = [f"exit codes {self.exit_codes}, {self.wall_s:.1f} s; {'; '.join(self.proofs)}"]
        lines += [
            f"{item['id']} {item['status']}: {item['message']} {item['culprits']}"
            for item in (self.result["checks"] if self.result else ())
            if item["status"] != "PASS"
        ]
        lines += [f"--- node {index}\n{text[-3000:]}" for index, text in self.outputs.items()]
        lines += [f"--- ranks of node {index}\n{text[:3000]}" for index, text in self.logs.items()]
        return "\n".join(lines)


def json_lines(content: str) -> list[dict[str, Any]]:
    """The objects among the lines of a text."""
    return list(_objects(content.splitlines()))


def _objects(lines: list[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found


def read_json(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
