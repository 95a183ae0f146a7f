"""Schemas of custom kinds by release line of a chart, and the versions that an upgrade passes through."""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SchemaLine:
    """Releases with the same schemas, up to the next line."""

    since: str
    """Their first version."""
    through: str
    """Their newest known version, which an upgrade passes through."""
    served: Sequence[str]
    """Versions of the kinds that the API server serves, and can read from its storage."""
    stored: str
    """The version that it stores."""


def number(version: str) -> tuple[int, ...]:
    """The parts of a version, without a leading `v` and what follows a third number."""
    found = re.match(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?", version)
    return tuple(int(part or 0) for part in found.groups()) if found else ()


def line_of(lines: Sequence[SchemaLine], version: str) -> SchemaLine | None:
    """The line of a version; None before the first. Versions after the last one are of its line."""
    return next((line for line in reversed(lines) if number(line.since) <= number(version)), None)


def path(lines: Sequence[SchemaLine], stored: str, target: str) -> list[str]:
    """The versions from a cluster that stores the version `stored` of a kind to `target`, which is the last.

    Each step goes as far as the schemas allow: objects are written again in the version that a step stores,
    before the next step removes their old one. Empty where no known line reads `stored`.
    """
    end = line_of(lines, target)
    reachable = list(lines[: lines.index(end) + 1]) if end else []
    steps: list[str] = []
    while reachable:
        last = next((line for line in reversed(reachable) if stored in line.served), None)
        if last is None:
            return []
        if last is reachable[-1]:
            return [*steps, target]
        steps.append(last.through)
        reachable, stored = reachable[reachable.index(last) + 1 :], last.stored
    return steps


def steps(lines: Sequence[SchemaLine], installed: str, target: str) -> list[str]:
    """The versions from the installed one to `target`, which is the last; empty where none is known."""
    line = line_of(lines, installed)
    return path(lines, line.stored, target) if line else []
