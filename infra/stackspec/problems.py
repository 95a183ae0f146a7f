"""Converts validation errors to problems: path, value, layer, rule, fix, code."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from infra.errors import Problem, did_you_mean
from infra.stackspec.document import Origin, path_below
from infra.stackspec.model import FORMS
from infra.stackspec.stack import StackSpec
from infra.stackspec.unions import Location, arms, describe, models_on

_SEE_SCHEMA = "See stacks/spec.schema.json."
_SECRETS = ("secret", "passphrase", "token")
_KINDS: dict[type, str] = {bool: "a boolean", int: "a number", float: "a number"}
_TYPES = {
    ("string_type",): "text",
    ("tuple_type", "list_type"): "a list",
    ("dict_type", "mapping_type", "model_type", "model_attributes_type"): "a mapping",
}
"""Words for the types of a file by kinds of pydantic's errors, which name those of Python."""


def path_of(location: Location) -> str:
    """`("layout", "pools", 0, "rdma")` as `layout.pools[0].rdma`."""
    path = ""
    for step in location:
        path = f"{path}[{step}]" if isinstance(step, int) else path_below(path, step)
    return path


def steps_of(path: str) -> list[int | str]:
    """`layout.pools[0].rdma` as `["layout", "pools", 0, "rdma"]`."""
    return [int(index) if index else name for index, name in re.findall(r"\[(\d+)\]|([^.\[\]]+)", path)]


def from_validation(
    error: ValidationError, origins: Mapping[str, Origin], root: type[BaseModel] = StackSpec
) -> list[Problem]:
    """One problem per wrong value of a `root`."""
    details = error.errors()
    wrong = [path_of(detail["loc"]) for detail in details]
    # Pydantic also reports a list as too short if its only item is wrong; only the item counts.
    return [
        _problem(detail, origins, root)
        for detail, path in zip(details, wrong, strict=True)
        if detail["type"] != "too_short" or not any(other.startswith(f"{path}[") for other in wrong)
    ]


def booleans_for_numbers(content: Any, checked: Any, path: str = "") -> Iterator[Problem]:
    """A problem for each `true` or `false` of the content that has become a number of the spec."""
    if isinstance(content, bool) and type(checked) in (int, float):
        yield Problem(path, content, "must be a number", "Write a number.", code="boolean-for-number")
    elif isinstance(content, Mapping):
        values = (
            checked if isinstance(checked, Mapping) else vars(checked) if hasattr(checked, "__dict__") else {}
        )
        for key in content.keys() & values.keys():
            yield from booleans_for_numbers(content[key], values[key], path_below(path, key))
    elif isinstance(content, list) and isinstance(checked, tuple):
        for index, (value, one) in enumerate(zip(content, checked, strict=False)):
            yield from booleans_for_numbers(value, one, f"{path}[{index}]")


def placed(problems: Iterable[Problem], origins: Mapping[str, Origin]) -> list[Problem]:
    """The problems with the layer, file and line of each value, if known."""
    return [
        problem.placed(_origin(problem.path, origins), _origin(problem.against, origins))
        for problem in problems
    ]


def _origin(path: str, origins: Mapping[str, Origin]) -> str:
    """Origin of the value at a path; if only parts of it have one, the first."""
    if not path:
        return ""
    found = origins.get(path)
    if found is None:
        below = (f"{path}.", f"{path}[")
        found = next((origin for key, origin in origins.items() if key.startswith(below)), None)
    return str(found) if found else ""


def _problem(detail: ErrorDetails, origins: Mapping[str, Origin], root: type[BaseModel]) -> Problem:
    steps, models = models_on(root, detail["loc"])
    path, kind, value = path_of(steps), detail["type"], detail["input"]
    see = _SEE_SCHEMA if root is StackSpec else "See its schema."
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _wrong_tag(path, steps, models, detail)
    parent, key = (models[-2] if len(models) > 1 else None), str(steps[-1]) if steps else ""
    if kind == "extra_forbidden":
        return _unknown_key(path, steps, models)
    if kind == "missing":
        rule, fix = "required key is missing", f"Add it: {describe(parent, key) or see}"
        return Problem(path, None, rule, fix, code="required-key-missing")
    text = origins[path].text if path in origins else None
    if any(word in key for word in _SECRETS):  # the secret itself may be in the place of its name
        value = text = None
    if kind == "string_type" and text is not None:
        rule = f"must be text, and without quotes YAML takes it for {_KINDS[type(value)]}"
        return Problem(path, text, rule, f'Put it in quotes: "{text}".', code="text-without-quotes")
    rule = detail["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    rule = next((f"must be {word}" for kinds, word in _TYPES.items() if kind in kinds), rule)
    if kind == "too_short":
        rule = f"must have at least {detail['ctx']['min_length']} item"
    if kind == "string_pattern_mismatch":
        rule = f"must be {FORMS[detail['ctx']['pattern']]}"
    meaning = describe(parent, key)
    fix = f"Set a value that fits its meaning: {meaning}" if meaning else see
    if rule == "must be a mapping" and (wanted := models[-1]):
        required = [name for name, field in wanted.model_fields.items() if field.is_required()]
        fix = (
            f"Write a mapping with the keys {', '.join(required or wanted.model_fields)}. {meaning}".rstrip()
        )
    if kind == "tuple_type" and not isinstance(value, Mapping):
        fix = f"Write a list: [{value}]."
    if kind == "literal_error":
        fix = did_you_mean(value, re.findall(r"'([^']*)'", detail["ctx"]["expected"]), fix)
    return Problem(path, value, rule[:1].lower() + rule[1:], fix, code=kind.replace("_", "-"))


def _wrong_tag(
    path: str, steps: list[int | str], models: list[type[BaseModel] | None], detail: ErrorDetails
) -> Problem:
    parent = models[-2]
    assert parent is not None
    field = parent.model_fields[str(steps[-1])]
    known = [*arms(field)]
    value = detail["input"]
    given = value.get(field.discriminator) if isinstance(value, Mapping) else None
    fix = did_you_mean(given, known, f"Choose from {', '.join(known)}.")
    rule, code = (
        ("required key is missing", "required-key-missing")
        if given is None
        else ("no such choice", "no-such-choice")
    )
    return Problem(f"{path}.{field.discriminator}", given, rule, fix, code=code)


def _unknown_key(path: str, steps: list[int | str], models: list[type[BaseModel] | None]) -> Problem:
    parent, key = models[-2], str(steps[-1])
    known = sorted(parent.model_fields) if parent else []
    discriminator, tag, others = _other_arms(steps, models)
    having = [other for other, arm in others.items() if key in arm.model_fields]
    if having:
        rule = f"a key of {discriminator} {' or '.join(having)}, and {discriminator} is {tag}"
        return Problem(path, None, rule, f"Remove it, or change {discriminator}.", code="key-of-other-choice")
    fix = did_you_mean(key, known, f"Known here: {', '.join(known)}.")
    return Problem(path, None, "unknown key", fix, code="unknown-key")


def _other_arms(
    steps: list[int | str], models: list[type[BaseModel] | None]
) -> tuple[str, str, Mapping[str, type[BaseModel]]]:
    """Discriminator and tag of the union with the key, and the other arms of the union."""
    owner, holder = (models[-3] if len(models) > 2 else None), models[-2]
    field = owner.model_fields.get(str(steps[-2])) if owner and len(steps) > 1 else None
    choices: dict[str, Any] = dict(arms(field)) if field else {}
    tag = next((tag for tag, arm in choices.items() if arm is holder), "")
    choices.pop(tag, None)
    return str(field.discriminator if field else ""), tag, choices
