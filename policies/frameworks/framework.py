"""Read the tables of frameworks, and map rules to the controls that they are evidence for.

A reference is either verified, with its source, or to be confirmed. Only an auditor decides whether a
control is met; a rule is evidence for the part of it that it judges.
"""

import datetime
import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policies.catalog import PolicyRule

_FOLDER = Path(__file__).parent
TO_BE_CONFIRMED = "to be confirmed"


@dataclass(frozen=True)
class ControlReference:
    """Reference of a control to a rule that is evidence for it."""

    framework: str
    """Its key, such as soc2."""
    control: str
    rule: str
    why: str
    verified: str = ""
    """Source of the verification; empty if it is to be confirmed."""

    @property
    def label(self) -> str:
        """Framework and control, such as soc2 CC6.6."""
        return f"{self.framework} {self.control}"

    @property
    def status(self) -> str:
        """Status in reports: verified or to be confirmed."""
        return "verified" if self.verified else TO_BE_CONFIRMED


@dataclass(frozen=True)
class Framework:
    """Framework: its controls that rules can be evidence for, and the references to them."""

    key: str
    name: str
    source: str
    """Source of the ids of its controls, with the version."""
    read: datetime.date
    wording: str
    """Origin of the titles."""
    controls: Mapping[str, str]
    """Title by id."""
    references: tuple[ControlReference, ...]
    cloud: str = ""
    """Cloud that it is limited to; empty for any."""


def frameworks(rules: Mapping[str, PolicyRule]) -> tuple[Framework, ...]:
    """All frameworks, by key. Some consist of the references of `rules`."""
    return tuple(_read(path, rules) for path in sorted((_FOLDER / "tables").glob("*.toml")))


def by_rule(found: tuple[Framework, ...]) -> Mapping[str, list[ControlReference]]:
    """References by rule."""
    made: dict[str, list[ControlReference]] = {}
    for framework in found:
        for reference in framework.references:
            made.setdefault(reference.rule, []).append(reference)
    return made


@functools.cache
def without_control() -> Mapping[str, str]:
    """Rules without a control in any framework, with the reason."""
    rows = tomllib.loads((_FOLDER / "none.toml").read_text(encoding="utf-8"))["none"]
    return {rule: row["why"] for row in rows for rule in row["rules"]}


def _read(path: Path, rules: Mapping[str, PolicyRule]) -> Framework:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    given = _own(path.stem, table, rules) if "prefix" in table else _written(path.stem, table)
    references = sorted(given, key=lambda one: (list(table["controls"]).index(one.control), one.rule))
    return Framework(
        path.stem,
        table["name"],
        table["source"],
        table["read"],
        table["wording"],
        table["controls"],
        tuple(references),
        table.get("cloud", ""),
    )


def _written(key: str, table: Mapping[str, Any]) -> Iterator[ControlReference]:
    for row in table["evidence"]:
        for rule in row["rules"]:
            yield ControlReference(key, row["control"], rule, row["why"], row.get("verified", ""))


def _own(key: str, table: Mapping[str, Any], rules: Mapping[str, PolicyRule]) -> Iterator[ControlReference]:
    """References of the rules themselves, which were all read at their source."""
    prefix = table["prefix"]
    for rule in rules.values():
        for name in rule.references:
            if name.startswith(prefix):
                control = name.removeprefix(prefix)
                yield ControlReference(key, control, rule.id, "The rule asks for the same.", table["source"])
