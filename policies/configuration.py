"""How an environment or a client is judged: settings that differ, and rules that do not bind there."""

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from infra.errors import Problem, UserError
from policies.settings import Settings

Enforcement = Literal["mandatory", "advisory", "disabled"]
"""Advisory: told, and not counted in the verdict. Disabled: not asked, and told as not applicable."""
_FIX = "docs/reference/policies.md has the rules and the settings."
_FORMS: Mapping[str, Any] = {"settings": Settings, "enforcement": dict[str, Enforcement]}


@dataclass(frozen=True)
class Configuration:
    """What a file says; without one, every rule binds."""

    settings: Settings = field(default_factory=Settings)
    enforcement: Mapping[str, Enforcement] = field(default_factory=dict)
    """By id of a rule, or by its group such as COST; the id counts more."""

    def enforced(self, rule: str) -> Enforcement:
        """How a rule binds."""
        return self.enforcement.get(rule) or self.enforcement.get(rule.split("-")[1]) or "mandatory"


def read(
    path: Path, rules: Mapping[str, Any], today: datetime.date | None = None, environment: str | None = None
) -> Configuration:
    """The configuration in a file. Raises UserError with all its faults; `rules` are all there are, by id.

    `today` is the day on which is judged, unless the file names one. `environment` names one of the file's
    `environments`, whose settings and enforcement are laid over those of the file. Faults of all are told.
    """
    from policies import yaml_file  # noqa: PLC0415 - an audit without a file needs none

    found = yaml_file.load(path, frozenset({*_FORMS, "environments"}), _FIX)
    environments = found.pop("environments", None) or {}
    if not isinstance(environments, dict) or not all(map(_is_configuration, environments.values())):
        what = "must be an object: by its name, each environment's settings and enforcement, nothing else"
        raise UserError([Problem(f"{path}: environments", environments, what, _FIX)])
    if today:
        found["settings"] = _laid({"today": today}, found.get("settings"))
    made, problems = _made(path, found, rules)
    known = {(one.path, one.rule) for one in problems}
    named: dict[str, Configuration] = {}
    for name, over in environments.items():
        laid = {key: _laid(found.get(key), (over or {}).get(key)) for key in _FORMS}
        named[name], faults = _made(path, laid, rules)
        here = f"{path}: environments.{name}."
        problems += [
            replace(one, path=one.path.replace(f"{path}: ", here, 1))
            for one in faults
            if (one.path, one.rule) not in known
        ]
    if environment not in named and (environment or named):
        rule = f"must be one of {', '.join(map(str, named))}" if named else f"{path} has no environments"
        problems.append(Problem("environment", environment, rule, "Name one of them, as the file does."))
    if problems:
        raise UserError(problems)
    return named[environment] if environment else made


def _is_configuration(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and _FORMS.keys() >= value.keys())


def _laid(under: Any, over: Any) -> Any:
    """Two parts of the same form; what is of another form stays as it is, to be refused."""
    if isinstance(under or {}, dict) and isinstance(over or {}, dict):
        return {**(under or {}), **(over or {})}
    return over or under


def _made(
    path: Path, parts: Mapping[str, Any], rules: Mapping[str, Any]
) -> tuple[Configuration, list[Problem]]:
    """(configuration, its faults)."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - an audit without a file needs none

    from policies import yaml_file  # noqa: PLC0415

    problems: list[Problem] = []
    made: dict[str, Any] = {}
    for key, form in _FORMS.items():
        try:
            made[key] = TypeAdapter(form).validate_python(parts.get(key) or {})
        except ValidationError as error:
            problems += yaml_file.faults(path, key, error, _FIX).problems
    told = Configuration(**made) if not problems else Configuration()
    problems += [
        Problem(f"{path}: {where}", value, rule, _FIX) for where, value, rule in _faults(told, rules)
    ]
    return told, problems


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
