"""The package's Pulumi schema, made from the type hints and docstrings of its components."""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from plugin.exposed import EXPOSED, NAME, component
from plugin.shapes import Field, Kind, Record, ValueType, arguments, camel, outputs

FILE = Path(__file__).with_name("schema.json")
"""The schema that the plugin answers with: to make it, the SDKs of all clouds are imported (10 s)."""
LANGUAGES = ("nodejs", "python", "go", "csharp", "java")
_NAMED = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+)+)`")
_OF_PYTHON = (
    (re.compile(r"\s*\(`(?:(?:components|infra|stacks|trainstack)\.[\w.]+|[\w/]+\.py)`\)"), ""),
    (re.compile(r"\(`providers=\[[a-z, ]+\]`\)"), "(option `providers`)"),
    (re.compile(r"`(\w+)Args(\.\w+)?`"), r"`\1\2`"),
    (re.compile(r"\bRaises UserError\b"), "Fails with an error"),
    (re.compile(r"\bUnknownFactError for\b"), "also for"),
    (re.compile(r"\b([Dd]efault) False\b"), r"\1: no"),
    (re.compile(r"\bNone without\b"), "Absent without"),
)
"""What docstrings say for readers of Python, and what programs in other languages have in its place."""


def version() -> str:
    """The version of the package, which is that of the plugin."""
    return metadata.version(NAME)


@cache
def text() -> str:
    """The schema as JSON, in the form of `FILE`."""
    return json.dumps(schema(), indent=1) + "\n"


def schema() -> dict[str, Any]:
    """The whole schema (see "Package schema" in Pulumi's documentation)."""
    signatures = {name: (arguments(component(name)), outputs(component(name))) for name in EXPOSED}
    records = dict(_nested([one for pair in signatures.values() for one in pair]))
    names = {one.name for pair in signatures.values() for each in pair for one in each.fields}
    names |= {one.name for each in records.values() for one in each.fields}

    def said(docstring: str) -> str:
        """A docstring with the names and terms that other languages have."""
        text = _NAMED.sub(lambda found: f"`{camel(found[1])}`" if found[1] in names else found[0], docstring)
        for pattern, words in _OF_PYTHON:
            text = pattern.sub(words, text)
        return text

    def properties(owner: Record, *, plain: bool) -> dict[str, Any]:
        return {one.public: _property(one.shape, said(one.text), plain=plain) for one in owner.fields}

    return {
        "name": NAME,
        "version": version(),
        "displayName": NAME,
        "description": "Building blocks of training stacks: networks, clusters, GPU pools, storage, MLflow.",
        "license": "Apache-2.0",
        "language": {each: {"respectSchemaVersion": True} for each in LANGUAGES},
        "resources": {
            f"{NAME}:index:{name}": {
                "isComponent": True,
                "type": "object",
                "description": said(registered.text),
                "inputProperties": properties(given, plain=True),
                "requiredInputs": _required(given),
                "properties": properties(registered, plain=False),
                "required": _required(registered),
            }
            for name, (given, registered) in signatures.items()
        },
        "types": {
            f"{NAME}:index:{name}": {
                "type": "object",
                "description": said(one.text),
                "properties": properties(one, plain=True),
                "required": _required(one),
            }
            for name, one in sorted(records.items())
        },
    }  # fmt: skip


def type_name(one: Record) -> str:
    """The name of a type: that of its class without `Args`, which generated SDKs add again.

    It begins with its cloud, because both clouds have classes of the same name, and is no component's name.
    """
    bare = one.name.removesuffix("Args")
    cloud = one.cloud.capitalize()
    name = bare if bare.startswith(cloud) else f"{cloud}{bare}"
    return f"{name}Settings" if name in EXPOSED else name


def _property(shape: ValueType, description: str, *, plain: bool) -> dict[str, Any]:
    text = {"description": description} if description else {}
    return {**text, **_type(shape, plain=plain and not shape.late)}


def _type(shape: ValueType, *, plain: bool) -> dict[str, Any]:
    """A type of the schema; what is not `plain` may be an output of another resource."""
    mark = {"plain": True} if plain else {}
    match shape.kind:
        case Kind.RECORD:
            assert shape.record
            return {"$ref": f"#/types/{NAME}:index:{type_name(shape.record)}", **mark}
        case Kind.ANY:
            return {"$ref": "pulumi.json#/Any", **mark}
        case Kind.LIST:
            assert shape.inner
            return {"type": "array", "items": _inner(shape, plain=plain), **mark}
        case Kind.MAP:
            assert shape.inner
            return {"type": "object", "additionalProperties": _inner(shape, plain=plain), **mark}
    return {"type": shape.kind.value, **mark}


def _inner(shape: ValueType, *, plain: bool) -> dict[str, Any]:
    assert shape.inner
    # An object in a plain list is not marked: Go's generator would use a type that it leaves out (Pulumi
    # 3.259 codegen/go/gen.go). The plugin itself refuses outputs there.
    return _type(shape.inner, plain=plain and not shape.inner.late and shape.inner.record is None)


def _required(one: Record) -> list[str]:
    return sorted(each.public for each in one.fields if each.required)


def _nested(records: list[Record]) -> Iterator[tuple[str, Record]]:
    """Types that the fields of records refer to, at any depth, by name."""
    for one in records:
        for each in one.fields:
            found = _record_of(each)
            if found:
                yield type_name(found), found
                yield from _nested([found])


def _record_of(one: Field) -> Record | None:
    shape: ValueType | None = one.shape
    while shape:
        if shape.record:
            return shape.record
        shape = shape.inner
    return None
