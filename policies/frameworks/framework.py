"""Reads the tables of frameworks, and says of every rule which controls it is evidence for.

A reference is either verified, with the place where somebody found the same, or to be confirmed. Nobody but
an auditor decides whether a control is met; a rule is evidence for the part of it that it judges.
"""

import datetime
import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policies.catalogue import Rule

_FOLDER = Path(__file__).parent
TO_BE_CONFIRMED = "to be confirmed"


@dataclass(frozen=True)
class Reference:
    """That a rule is evidence for a control."""

    framework: str
    """Its key, such as soc2."""
    control: str
    rule: str
    why: str
    verified: str = ""
    """Where somebody found the same; empty where that is to be confirmed."""

    @property
    def label(self) -> str:
        """Framework and control, such as soc2 CC6.6."""
        return f"{self.framework} {self.control}"

    @property
    def status(self) -> str:
        """What every report shows."""
        return "verified" if self.verified else TO_BE_CONFIRMED


@dataclass(frozen=True)
class Framework:
    """One framework: its controls that rules can be evidence for, and the references to them."""

    key: str
    name: str
    source: str
    """Where the ids of its controls were read, with the version."""
    read: datetime.date
    wording: str
    """Whose words the titles are."""
    controls: Mapping[str, str]
    """Title by id."""
    references: tuple[Reference, ...]
    cloud: str = ""
    """The only one that it is about; empty where it is about any."""


def frameworks(rules: Mapping[str, Rule]) -> tuple[Framework, ...]:
    """Every framework, by its key. `rules` are those whose own references some frameworks are made of."""
    return tuple(_read(path, rules) for path in sorted((_FOLDER / "tables").glob("*.toml")))


def by_rule(found: tuple[Framework, ...]) -> Mapping[str, list[Reference]]:
    """The references of every rule that has some."""
    made: dict[str, list[Reference]] = {}
    for framework in found:
        for reference in framework.references:
            made.setdefault(reference.rule, []).append(reference)
    return made


@functools.cache
def without_control() -> Mapping[str, str]:
    """Rules that are evidence for no control of any framework, with the reason."""
    rows = tomllib.loads((_FOLDER / "none.toml").read_text(encoding="utf-8"))["none"]
    return {rule: row["why"] for row in rows for rule in row["rules"]}


def _read(path: Path, rules: Mapping[str, Rule]) -> Framework:
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


def _written(key: str, table: Mapping[str, Any]) -> Iterator[Reference]:
    for row in table["evidence"]:
        for rule in row["rules"]:
            yield Reference(key, row["control"], rule, row["why"], row.get("verified", ""))


def _own(key: str, table: Mapping[str, Any], rules: Mapping[str, Rule]) -> Iterator[Reference]:
    """What the rules themselves refer to: there only what somebody has read is named."""
    prefix = table["prefix"]
    for rule in rules.values():
        for told in rule.references:
            if told.startswith(prefix):
                control = told.removeprefix(prefix)
                yield Reference(key, control, rule.id, "The rule asks for the same.", table["source"])
