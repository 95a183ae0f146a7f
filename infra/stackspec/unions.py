"""Traversal of the models of a spec, including unions: the model at a path."""

import functools
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
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


class Unusable:
    """Stands for a value that is not of its type: every use of it raises TypeError or AttributeError."""

    def _raise(self, *_: Any) -> Any:
        raise TypeError("not of its type")

    __bool__ = __eq__ = __ne__ = __hash__ = __str__ = __format__ = _raise


def tolerant(model: type[BaseModel], content: Any) -> Any:
    """The content as a model of the spec: missing values stay missing, and Unusable stands for wrong ones."""
    if not isinstance(content, Mapping):
        return Unusable()
    fields = {name: field for name, field in model.model_fields.items() if name in content}
    return model.model_construct(
        **{name: _tolerant_field(model, name, field, content[name]) for name, field in fields.items()}
    )


def _tolerant_field(model: type[BaseModel], name: str, field: FieldInfo, value: Any) -> Any:
    kind, choices = bare(field.annotation), arms(field)
    items = get_args(kind)
    if choices and isinstance(value, Mapping):
        kind = choices.get(str(value.get(field.discriminator)), kind)
    if (one := model_or_none(kind)) and value is not None:
        return tolerant(one, value)
    if items and (one := model_or_none(items[0])) and isinstance(value, list):
        return tuple(tolerant(one, item) for item in value)
    if get_origin(kind) is dict and (one := model_or_none(items[1])) and isinstance(value, Mapping):
        return {key: tolerant(one, item) for key, item in value.items()}
    try:
        return _adapter(model, name).validate_python(value)
    except ValidationError:
        return Unusable()


@functools.cache
def _adapter(model: type[BaseModel], name: str) -> TypeAdapter[Any]:
    field = model.model_fields[name]
    kind: Any = Annotated[field.annotation, field]
    return TypeAdapter(kind)
