"""Traversal of the models of a spec, including unions: the model at a path."""

import types
from collections.abc import Mapping, Sequence
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

Location = Sequence[int | str]


def arms(field: FieldInfo) -> Mapping[str, type[BaseModel]]:
    """The models of a discriminated union by tag; empty for every other field."""
    if not isinstance(field.discriminator, str):
        return {}
    return {
        tag: arm
        for arm in get_args(field.annotation)
        if model_or_none(arm)
        for tag in get_args(arm.model_fields[field.discriminator].annotation)
    }


def models_on(
    root: type[BaseModel], location: Location
) -> tuple[list[int | str], list[type[BaseModel] | None]]:
    """The path to a location of a validation error, and the model at each step of it.

    Pydantic adds the tag of a union as a step; the path has none. The list of models begins with `root` and
    has one entry more than the path; None where there is no model.
    """
    path: list[int | str] = []
    models: list[type[BaseModel] | None] = [root]
    kind: Any = root
    choice: Mapping[str, type[BaseModel]] = {}
    for step in location:
        if choice and step in choice:
            kind = models[-1] = choice[str(step)]
            choice = {}
            continue
        choice = {}
        if isinstance(step, int):
            kind = bare(next(iter(get_args(kind)), None))
        elif model_or_none(kind) and step in kind.model_fields:
            field = kind.model_fields[step]
            choice, kind = arms(field), bare(field.annotation)
        elif get_origin(kind) is dict:
            kind = bare(get_args(kind)[1])
        else:
            kind = None
        path.append(step)
        models.append(model_or_none(kind))
    return path, models


def model_or_none(kind: Any) -> type[BaseModel] | None:
    """The kind if it is a model."""
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def bare(annotation: Any) -> Any:
    """The type without `| None`; a union of models is unchanged."""
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [part for part in get_args(annotation) if part is not type(None)]
        return parts[0] if len(parts) == 1 else annotation
    return annotation


def description_in(value: Any, path: Location) -> str:
    """Description of the innermost field on a path of a spec, as one line; may be empty."""
    found = ""
    for step in path:
        if isinstance(value, BaseModel):
            found = describe(type(value), str(step))
            value = getattr(value, str(step), None)
        elif isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, Sequence):
            value = value[step]
    return found


def describe(model: type[BaseModel] | None, key: str) -> str:
    """Description of a field, as one line; that of its model for the tag of a union, empty for no field."""
    field = model.model_fields.get(key) if model else None
    text = (field.description if field else None) or ""
    if model and field and text in {f"`{tag}`" for tag in get_args(field.annotation)}:
        text = model.__doc__ or text
    return " ".join(text.split())


def tolerant(kind: Any, value: Any, field: FieldInfo | None = None) -> Any:
    """The value as models of the spec, without validation: missing and wrong values remain."""
    kind = bare(kind)
    if field is not None and isinstance(value, Mapping):
        kind = arms(field).get(str(value.get(field.discriminator)), kind)
    model = model_or_none(kind)
    if model and isinstance(value, Mapping):
        given = {
            name: tolerant(each.annotation, value[name], each)
            for name, each in model.model_fields.items()
            if name in value
        }
        return model.model_construct(**given)
    if isinstance(value, Mapping) and get_origin(kind) is dict:
        return {name: tolerant(get_args(kind)[1], entry) for name, entry in value.items()}
    if isinstance(value, list):
        item = next(iter(get_args(kind)), None)
        return tuple(tolerant(item, entry) for entry in value)
    return value
