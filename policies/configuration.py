"""Configuration of an environment or a client: settings, and enforcement of rules."""

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from infra.errors import Problem, UserError
from policies.settings import RuleSettings

Enforcement = Literal["mandatory", "advisory", "disabled"]
"""Advisory: reported, but not counted in the exit code. Disabled: reported as not applicable."""
_FIX = "docs/reference/policies.md has the rules and the settings."
_FORMS: Mapping[str, Any] = {"settings": RuleSettings, "enforcement": dict[str, Enforcement]}


@dataclass(frozen=True)
class Configuration:
    """Settings and enforcement; by default every rule is mandatory."""

    settings: RuleSettings = field(default_factory=RuleSettings)
    enforcement: Mapping[str, Enforcement] = field(default_factory=dict)
    """By rule id, or by group such as COST; the id takes precedence."""

    def enforced(self, rule: str) -> Enforcement:
        """Enforcement of a rule."""
        return self.enforcement.get(rule) or self.enforcement.get(rule.split("-")[1]) or "mandatory"


def read(
    path: Path, rules: Mapping[str, Any], today: datetime.date | None = None, environment: str | None = None
) -> Configuration:
    """The configuration in a file. Raises UserError with all its faults; `rules` are all rules by id.

    `today` is the day of the audit unless the file sets one. `environment` is one of the file's
    `environments`, whose settings and enforcement override those of the file. All of them are validated.
    """
    from policies import yaml_file  # noqa: PLC0415 - an audit without a file needs none

    found = yaml_file.load(path, frozenset({*_FORMS, "environments"}), _FIX)
    environments = found.pop("environments", None) or {}
    if not isinstance(environments, dict) or not all(map(_is_configuration, environments.values())):
        what = "must be an object: by its name, each environment's settings and enforcement, nothing else"
        problem = Problem(f"{path}: environments", environments, what, _FIX, code="environments-invalid")
        raise UserError([problem])
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
    problems += [
        Problem(f"{path}: environments.{name}.{where}", value, rule, _FIX, code=code)
        for name, one in named.items()
        for code, where, value, rule in _uncounted(one.settings, named)
    ]
    if environment not in named and (environment or named):
        rule = f"must be one of {', '.join(map(str, named))}" if named else f"{path} has no environments"
        fix = "Name one of them, as the file does."
        problems.append(Problem("environment", environment, rule, fix, code="environment-unknown"))
    if problems:
        raise UserError(problems)
    return named[environment] if environment else made


def environments(path: Path) -> tuple[str, ...]:
    """The names of the environments in a file. Raises UserError for a file that cannot be read."""
    from policies import yaml_file  # noqa: PLC0415

    found = yaml_file.load(path, frozenset({*_FORMS, "environments"}), _FIX).get("environments")
    return tuple(map(str, found)) if isinstance(found, dict) else ()


def _is_configuration(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and _FORMS.keys() >= value.keys())


def _laid(under: Any, over: Any) -> Any:
    """Merge two objects; a value of another type stays unchanged and fails validation."""
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
    configuration = Configuration(**made) if not problems else Configuration()
    problems += [
        Problem(f"{path}: {where}", value, rule, _FIX, code=code)
        for code, where, value, rule in _faults(configuration, rules)
    ]
    return configuration, problems


def _uncounted(
    settings: RuleSettings, named: Mapping[str, Configuration]
) -> Iterator[tuple[str, str, object, str]]:
    """Fault of an environment whose cost the budget of another one does not have to count."""
    if not settings.budget_stack:
        return
    other = named.get(settings.budget_stack)
    if other is None or settings.budget_tag not in other.settings.covered_tags:
        rule = f"must be an environment whose covered_tags have {settings.budget_tag}"
        yield "budget-stack-does-not-count", "settings.budget_stack", settings.budget_stack, rule


def _faults(configuration: Configuration, rules: Mapping[str, Any]) -> Iterator[tuple[str, str, object, str]]:
    """(code, path, value, rule) of values of the right type that are invalid."""
    groups = {rule.split("-")[1] for rule in rules}
    settings = configuration.settings
    for name in configuration.enforcement:
        if name not in rules and name not in groups:
            yield "enforcement-unknown-rule", f"enforcement.{name}", None, "is no rule and no group of rules"
    for name, value in vars(settings).items():
        if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
            yield "setting-negative", f"settings.{name}", value, "must not be negative"
    for name, form in settings.required_tags.items():
        try:
            re.compile(form)
        except re.error as error:
            rule = f"must be a regular expression: {error}"
            yield "required-tag-invalid-pattern", f"settings.required_tags.{name}", form, rule
    if bool(settings.budget_stack) != bool(settings.budget_tag):
        rule = "must be set together with budget_tag"
        yield "budget-stack-without-tag", "settings.budget_stack", settings.budget_stack, rule
    for tag in (settings.budget_tag, *settings.covered_tags):
        if tag and not all(tag.partition("=")):
            yield "budget-tag-invalid", "settings.covered_tags", tag, "must be KEY=VALUE"
    if settings.least_log_retention_days > settings.log_retention_days:
        least = settings.least_log_retention_days
        rule = "must not be above log_retention_days"
        yield "log-retention-bounds-conflict", "settings.least_log_retention_days", least, rule
