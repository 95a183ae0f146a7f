"""Says what is wrong with a value in the words of the spec: path, value, rule, fix."""

import difflib
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from infra.errors import Problem
from infra.spec.document import Origin
from infra.spec.stack import StackSpec

Location = tuple[int | str, ...]


def path_of(location: Location) -> str:
    """`("pools", 0, "efa")` as `pools[0].efa`."""
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


def from_validation(error: ValidationError, origins: Mapping[str, Origin]) -> list[Problem]:
    """One problem per wrong value; the fix names the line to change, where it is known."""
    return [_problem(detail, origins) for detail in error.errors()]


def _problem(detail: ErrorDetails, origins: Mapping[str, Origin]) -> Problem:
    path = path_of(detail["loc"])
    place = origins.get(path)
    where = f" ({place})" if place and place.line else ""
    parent, key = model_at(detail["loc"][:-1]), str(detail["loc"][-1])
    if detail["type"] == "extra_forbidden":
        known = sorted(parent.model_fields) if parent else []
        near = difflib.get_close_matches(key, known, n=1)
        fix = f"Did you mean `{near[0]}`?" if near else f"Known here: {', '.join(known)}."
        return Problem(path, None, "unknown key", fix + where)
    if detail["type"] == "missing":
        return Problem(path, None, "required key is missing", f"Add it: {describe(parent, key)}")
    rule = detail["msg"].removeprefix("Value error, ")
    return Problem(path, detail["input"], rule[:1].lower() + rule[1:], f"{describe(parent, key)}{where}")


def describe(model: type[BaseModel] | None, key: str) -> str:
    """What the field is for, as one line."""
    field = model.model_fields.get(key) if model else None
    text = field.description if field else None
    return " ".join((text or "See stacks/spec.schema.json.").split())


def field_description(path: str) -> str:
    """What the field at a path such as `pools[0].capacity` is for; empty where the spec has no field."""
    steps: list[int | str] = []
    for part in path.split("."):
        name, *indices = part.replace("]", "").split("[")
        steps += [name, *map(int, indices)]
    while steps and isinstance(steps[-1], int):
        steps.pop()
    model = model_at(tuple(steps[:-1])) if steps else None
    return describe(model, str(steps[-1])) if model and str(steps[-1]) in model.model_fields else ""


def model_at(location: Location) -> type[BaseModel] | None:
    """The model that describes what stands at a location, or None where there is none."""
    kind: Any = StackSpec
    for step in location:
        if isinstance(step, int):
            kind = next(iter(get_args(kind)), None)
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            field = kind.model_fields.get(step)
            kind = _bare(field.annotation) if field else None
        else:
            kind = None
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _bare(annotation: Any) -> Any:
    """The type without `| None`."""
    if get_origin(annotation) in (Union, types.UnionType):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation


def tolerant(kind: Any, value: Any) -> Any:
    """The value as models of the spec, unjudged: what is missing stays missing, what is wrong stays wrong."""
    kind = _bare(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(value, Mapping):
        given = {
            name: tolerant(field.annotation, value[name])
            for name, field in kind.model_fields.items()
            if name in value
        }
        return kind.model_construct(**given)
    if isinstance(value, list):
        item = next(iter(get_args(kind)), None)
        return tuple(tolerant(item, entry) for entry in value)
    return value
