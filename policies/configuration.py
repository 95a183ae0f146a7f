"""How an environment or a client is judged: settings that differ, and rules that do not bind there."""

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from infra.errors import Problem, UserError
from policies.settings import Settings

Enforcement = Literal["mandatory", "advisory", "disabled"]
"""Advisory: told, and not counted in the verdict. Disabled: not asked, and told as not applicable."""
_FIX = "docs/policies.md has the rules and the settings."


@dataclass(frozen=True)
class Configuration:
    """What a file says; without one, every rule binds."""

    settings: Settings = field(default_factory=Settings)
    enforcement: Mapping[str, Enforcement] = field(default_factory=dict)
    """By id of a rule, or by its group such as COST; the id counts more."""

    def enforced(self, rule: str) -> Enforcement:
        """How a rule binds."""
        return self.enforcement.get(rule) or self.enforcement.get(rule.split("-")[1]) or "mandatory"


def read(path: Path, rules: Mapping[str, Any], today: datetime.date | None = None) -> Configuration:
    """The configuration in a file. Raises UserError with all its faults; `rules` are all there are, by id.

    `today` is the day on which is judged, unless the file names one.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - an audit without a file needs none

    from policies import yaml_file  # noqa: PLC0415

    found = yaml_file.load(path, frozenset({"settings", "enforcement"}), _FIX)
    given = found.get("settings") or {}
    if today and isinstance(given, dict):
        found["settings"] = {"today": today, **given}
    problems: list[Problem] = []
    made: dict[str, Any] = {}
    for key, form in (("settings", Settings), ("enforcement", dict[str, Enforcement])):
        try:
            made[key] = TypeAdapter(form).validate_python(found.get(key) or {})
        except ValidationError as error:
            problems += yaml_file.faults(path, key, error, _FIX).problems
    told = Configuration(**made) if not problems else Configuration()
    problems += [
        Problem(f"{path}: {where}", value, rule, _FIX) for where, value, rule in _faults(told, rules)
    ]
    if problems:
        raise UserError(problems)
    return told


def _faults(told: Configuration, rules: Mapping[str, Any]) -> Iterator[tuple[str, object, str]]:
    """(path, value, rule) of what has the right form and makes no sense."""
    groups = {rule.split("-")[1] for rule in rules}
    for name in told.enforcement:
        if name not in rules and name not in groups:
            yield f"enforcement.{name}", None, "is no rule and no group of rules"
    for name, value in vars(told.settings).items():
        if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
            yield f"settings.{name}", value, "must not be negative"
    for name, form in told.settings.required_tags.items():
        try:
            re.compile(form)
        except re.error as error:
            yield f"settings.required_tags.{name}", form, f"must be a regular expression: {error}"
    if told.settings.least_log_retention_days > told.settings.log_retention_days:
        least = told.settings.least_log_retention_days
        yield "settings.least_log_retention_days", least, "must not be above log_retention_days"
