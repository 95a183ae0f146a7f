"""Validation of requests by the service model: rules that botocore's client leaves to the service.

Source: the service models in botocore (patterns, lengths, ranges, enumerations, required members);
messages are those of AWS services with the JSON protocol ("1 validation error detected: Value ... failed to
satisfy constraint: ...").
"""

import functools
import importlib
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.dataplane.aws.http import ServiceError


@functools.cache
def model(service: str) -> Any:
    """The `botocore.model.ServiceModel` of a service, such as `sagemaker`; read when first needed."""
    session: Any = importlib.import_module("botocore.session").Session()
    return session.get_service_model(service)


def check(service: str, operation: str, content: Mapping[str, Any]) -> None:
    """Raise ServiceError ValidationException with every member that violates the model."""
    shape = model(service).operation_model(operation).input_shape
    found = list(_problems(shape, content, "")) if shape is not None else []
    if found:
        count = f"{len(found)} validation error{'s' if len(found) > 1 else ''} detected"
        raise ServiceError("ValidationException", f"{count}: {'; '.join(found)}")


def _problems(shape: Any, value: Any, path: str) -> Iterator[str]:
    if shape.type_name in ("structure", "list", "map"):
        yield from _IN[shape.type_name](shape, value, path)
        return
    if not isinstance(value, _TYPES.get(shape.type_name, object)) or (
        isinstance(value, bool) and shape.type_name != "boolean"
    ):
        raise ServiceError("SerializationException", f"{path} is not a {shape.type_name}")
    for rule in _broken(shape, value):
        yield _words(value, path, rule)


def _structure(shape: Any, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        raise ServiceError("SerializationException", f"{path or 'the body'} is not a structure")
    for name in shape.required_members:
        if value.get(name) is None:
            yield _words(None, _below(path, name), "Member must not be null")
    for name, member in shape.members.items():
        if value.get(name) is not None:
            yield from _problems(member, value[name], _below(path, name))


def _list(shape: Any, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        raise ServiceError("SerializationException", f"{path} is not a list")
    for rule in _lengths(shape, len(value)):
        yield _words(value, path, rule)
    for index, one in enumerate(value):
        yield from _problems(shape.member, one, f"{path}.{index + 1}.member")


def _map(shape: Any, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        raise ServiceError("SerializationException", f"{path} is not a map")
    for rule in _lengths(shape, len(value)):
        yield _words(value, path, rule)
    for side, inside, ones in (("keys", shape.key, value.keys()), ("values", shape.value, value.values())):
        rules = dict.fromkeys(rule for one in ones for rule in _inner(inside, one, path))
        if rules:
            yield _words(value, path, f"Map {side[:-1]} must satisfy constraint: [{', '.join(rules)}]")


def _inner(shape: Any, value: Any, path: str) -> Iterator[str]:
    if shape.type_name in ("structure", "list", "map"):
        yield from _problems(shape, value, path)
    elif not isinstance(value, _TYPES.get(shape.type_name, object)):
        raise ServiceError("SerializationException", f"{path} holds what is not a {shape.type_name}")
    else:
        yield from _broken(shape, value)


def _broken(shape: Any, value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from _lengths(shape, len(value))
        pattern = shape.metadata.get("pattern")
        if pattern and not _fits(pattern, value):
            yield f"Member must satisfy regular expression pattern: {pattern}"
        if shape.metadata.get("enum") and value not in shape.metadata["enum"]:
            yield f"Member must satisfy enum value set: [{', '.join(shape.metadata['enum'])}]"
    elif shape.type_name in ("integer", "long", "float", "double"):
        low, high = shape.metadata.get("min"), shape.metadata.get("max")
        if low is not None and value < low:
            yield f"Member must have value greater than or equal to {low}"
        if high is not None and value > high:
            yield f"Member must have value less than or equal to {high}"


def _lengths(shape: Any, length: int) -> Iterator[str]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and length < low:
        yield f"Member must have length greater than or equal to {low}"
    if high is not None and length > high:
        yield f"Member must have length less than or equal to {high}"


def _fits(pattern: str, value: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is None or compiled.fullmatch(value) is not None


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """A pattern of a model; None for the few that only Java can parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern, re.ASCII)
    except re.error:
        return None


def _words(value: Any, path: str, rule: str) -> str:
    shown = value if isinstance(value, str) else json.dumps(value)
    subject = f"Value {shown!r}" if value is not None else "Value null"
    return f"{subject} at '{path}' failed to satisfy constraint: {rule}"


def _below(path: str, name: str) -> str:
    """Path of a member; services write its name with a lower-case first letter."""
    member = name[:1].lower() + name[1:]
    return f"{path}.{member}" if path else member


_IN = {"structure": _structure, "list": _list, "map": _map}
_TYPES: Mapping[str, Any] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "long": int,
    "float": (int, float),
    "double": (int, float),
}
