"""Checks that another program proposes, and what the rules have of them."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_FILE = Path(__file__).parent / "prowler_proposals.toml"
Status = Literal["has", "partly", "not"]


@dataclass(frozen=True)
class ProposedCheck:
    """One check: the rules that have its subject, or why there is none."""

    name: str
    issue: int
    """Number of the issue, or the pull request, that proposes it."""
    control: str
    status: Status
    rules: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Proposals:
    """The checks of one list, by name; `candidates` is how many the list has."""

    name: str
    source: str
    candidates: int
    checks: tuple[ProposedCheck, ...]


def proposals() -> Proposals:
    """The list of Prowler's issue 12597."""
    table = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    checks = (ProposedCheck(**{**row, "rules": tuple(row["rules"])}) for row in table["check"])
    return Proposals(table["name"], table["source"], table["candidates"], tuple(checks))
