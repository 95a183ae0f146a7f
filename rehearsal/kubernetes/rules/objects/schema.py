"""OpenAPI validation of custom objects by the schema of their definition; CEL expressions are rules."""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.model import UNKNOWN
from rehearsal.core.rules.model import Violation
from rehearsal.core.validate import nearest
from rehearsal.kubernetes.rules.accessors import mapping, rows
from rehearsal.kubernetes.rules.violations import duplicate, invalid, required, unsupported

_FILES = [Path(__file__).with_name(f"{name}_schemas.json") for name in ("crd", "gke")]
_KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "integer": (int,),
    "number": (int, float),
}  # fmt: skip
_AT_ROOT = ("apiVersion", "kind", "metadata", "status")


@functools.cache
def known() -> Mapping[str, Mapping[str, Any]]:
    """`apiVersion` -> kind -> schema: definitions of Kueue's kinds and of those of GKE."""
    found: dict[str, Mapping[str, Any]] = {}
    for file in _FILES:
        found |= json.loads(file.read_text())["schemas"]
    return found


def misfits(schema: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[Violation]:
    """Errors of a custom object by its schema, metadata excluded."""
    own = {name: value for name, value in body.items() if name not in _AT_ROOT}
    asked = [name for name in schema.get("required") or () if name not in _AT_ROOT]
    yield from _value({**schema, "required": asked, "type": "object"}, own, "")


def hollow(schema: Mapping[str, Any], old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Paths where an update leaves `{}` of a mapping with fields: server-side apply stores null.

    Source: sigs.k8s.io/structured-merge-diff typed/remove.go (doMap). A default takes the place of null.
    """
    for name, item in mapping(new).items():
        here, before = _join(path, name), mapping(old).get(name)
        own = mapping(mapping(schema.get("properties")).get(name))
        kept = own.get("nullable") or "default" in own or own.get("x-kubernetes-map-type") == "atomic"
        if item == {} and mapping(before) and own.get("type") == "object" and not kept:
            yield here
        yield from hollow(own, before, item, here)


def _value(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[Violation]:
    if value is UNKNOWN or (value is None and (schema.get("nullable") or path)):
        return
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            yield invalid(path, value, f"{path} in body must be of type integer or string")
        elif isinstance(value, str):
            yield from _text(schema, value, path)
        return
    kind = schema.get("type")
    fits = isinstance(value, _KINDS.get(str(kind), (object,)))
    if isinstance(value, float) and kind == "integer":
        fits = value.is_integer()
    if not fits or (isinstance(value, bool) and kind in ("integer", "number")):
        yield invalid(path, value, f"{path} in body must be of type {kind}")
        return
    if schema.get("enum") and value not in schema["enum"]:
        yield unsupported(path, value, [str(item) for item in schema["enum"]])
    if isinstance(value, dict):
        yield from _object(schema, value, path)
    elif isinstance(value, list):
        yield from _list(schema, value, path)
    elif isinstance(value, str):
        yield from _text(schema, value, path)
    elif not isinstance(value, bool):
        if schema.get("format") == "int32" and not -(2**31) <= value < 2**31:
            yield invalid(path, value, "Checked value must be of type integer with format int32")
        yield from _between(schema, "imum", value, value, path)


def _object(schema: Mapping[str, Any], value: Mapping[str, Any], path: str) -> Iterator[Violation]:
    fields, others = mapping(schema.get("properties")), schema.get("additionalProperties")
    for name in schema.get("required") or ():
        if value.get(name) is None and "default" not in mapping(fields.get(name)):
            yield required(_join(path, name))
    for name, item in value.items():
        if name in fields:
            yield from _value(fields[name], item, _join(path, name))
        elif isinstance(others, dict):
            yield from _value(others, item, _join(path, name))
        elif schema.get("x-kubernetes-embedded-resource") and name in _AT_ROOT:
            continue
        elif not others and not schema.get("x-kubernetes-preserve-unknown-fields") and fields:
            hint = nearest(name, fields)
            yield Violation(_join(path, name), f".{_join(path, name)}: field not declared in schema", hint)
    yield from _between(schema, "Properties", len(value), "", path)


def _list(schema: Mapping[str, Any], value: list[Any], path: str) -> Iterator[Violation]:
    for index, item in enumerate(value):
        yield from _value(mapping(schema.get("items")), item, f"{path}[{index}]")
    yield from _between(schema, "Items", len(value), len(value), path)
    seen: list[Any] = []
    keys = schema.get("x-kubernetes-list-map-keys")
    for index, row in rows(value) if keys else ():
        own = {key: row.get(key) for key in keys or ()}
        if own in seen and UNKNOWN not in own.values():
            yield duplicate(f"{path}[{index}]", own)
        seen.append(own)


def _text(schema: Mapping[str, Any], value: str, path: str) -> Iterator[Violation]:
    pattern = schema.get("pattern")
    form = _form(pattern) if isinstance(pattern, str) else None
    if form and not form.search(value):
        yield invalid(path, value, f"{path} in body should match '{pattern}'")
    yield from _between(schema, "Length", len(value), value, path)


@functools.cache
def _form(pattern: str) -> re.Pattern[str] | None:
    """A pattern in Go's syntax; None where Python reads it differently, or not at all."""
    start = "^(?i)"
    if pattern.startswith(start):
        pattern = f"(?i)^{pattern.removeprefix(start)}"
    try:
        return None if "[[:" in pattern else re.compile(pattern)
    except re.error:
        return None


def _between(schema: Mapping[str, Any], of: str, size: float, shown: Any, path: str) -> Iterator[Violation]:
    """Bounds such as minItems and maxItems; `of` is the part after `min` and `max`."""
    least, most = f"min{of}", f"max{of}"
    if least in schema and size < schema[least]:
        yield invalid(path, shown, f"{path} in body should be at least {schema[least]} ({least})")
    if most in schema and size > schema[most]:
        yield invalid(path, shown, f"{path} in body should be at most {schema[most]} ({most})")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
