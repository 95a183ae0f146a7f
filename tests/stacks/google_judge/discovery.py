"""Judge of a resource by the discovery document of its service: names, types, values, patterns, outputs."""

import functools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.schema import Property, ResourceSchema

FOLDER = Path(__file__).parent
_DEEPEST = 8
_BITS = {"int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1), "int64": (-(2**63), 2**63 - 1)}

Field = Mapping[str, Any]


@functools.cache
def apis() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `apis.toml` by type."""
    return tomllib.loads((FOLDER / "apis.toml").read_text(encoding="utf-8"))


@functools.cache
def _documents() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = json.loads((FOLDER / "discovery.json").read_text())["apis"]
    return found


class Judge:
    """The schema of one type, and the properties that are no part of it."""

    def __init__(self, token: str) -> None:
        row = apis()[token]
        api, _, self._root = row["schema"].partition(":")
        self._schemas = _documents()[api]["schemas"]
        self._names: Mapping[str, str] = row.get("names", {})
        self._outside = {*row.get("address", ()), *row.get("own", ())}

    def problems(self, inputs: Mapping[str, Any]) -> Iterator[str]:
        """Properties and values that the document does not have or does not accept, each with its path."""
        yield from self._object({"ref": self._root}, inputs, "", "")

    def words(self, schema: ResourceSchema) -> Iterator[tuple[str, list[str]]]:
        """(path, values) of every property of a type for which the document lists the values."""
        yield from self._words(schema, schema.inputs, {"ref": self._root}, "")

    def _words(
        self, schema: ResourceSchema, fields: Mapping[str, Property], field: Field, path: str
    ) -> Iterator[tuple[str, list[str]]]:
        for name, one in fields.items():
            here = f"{path}.{name}" if path else name
            found = None if here in self._outside else self._found(field, here, name)
            if found is None or found.get("output"):
                continue
            many = isinstance(one.type, dict) and "list" in one.type
            form = one.type["list"] if many else one.type
            if isinstance(form, dict) and "object" in form:
                # No schema of a request contains itself this deep.
                if path.count(".") < _DEEPEST:
                    yield from self._words(schema, schema.objects[form["object"]], found, here)
            elif values := found.get("items", found).get("enum"):
                yield f"{here}[]" if many else here, values

    def _object(self, field: Field, value: Mapping[str, Any], path: str, plain: str) -> Iterator[str]:
        for name, item in value.items():
            here, there = (f"{one}.{name}" if one else name for one in (path, plain))
            if item is None or there in self._outside:
                continue
            found = self._found(field, there, name)
            if found is None:
                yield f"{here}: {field.get('ref', 'the schema')} has no such field"
            elif found.get("output"):
                yield f"{here}: only an output"
            else:
                yield from self._value(found, item, here, there)

    def _found(self, field: Field, path: str, name: str) -> Field | None:
        """The field of a property: by its row in `names`, else by its name, in plural or singular."""
        if path in self._names:
            for step in self._names[path].split("."):
                field = self._fields(field).get(step, {})
            return field or None
        fields = self._fields(field)
        return next((fields[one] for one in _numbers(name) if one in fields), None)

    def _fields(self, field: Field) -> Mapping[str, Field]:
        field = field.get("items", field)
        named: Field = self._schemas[field["ref"]] if "ref" in field else field
        fields: Mapping[str, Field] = named.get("fields", {})
        return fields

    def _value(self, field: Field, value: Any, path: str, plain: str) -> Iterator[str]:
        if isinstance(value, list):
            # The provider makes a map of some lists, and an object of a list with one item.
            inside = field.get("items") or field.get("map") or (field if len(value) == 1 else None)
            if inside is None:
                yield f"{path}: no list is accepted"
            for index, item in enumerate(value if inside else ()):
                yield from self._value(inside or {}, item, f"{path}[{index}]", plain)
            return
        field = field.get("items", field)
        resolved = self._schemas[field["ref"]] if "ref" in field else field
        if resolved.get("type") == "object":
            if not isinstance(value, Mapping):
                yield f"{path}: an object is needed"
            elif "map" not in resolved:
                yield from self._object(field, value, path, plain)
        else:
            yield from _scalar(resolved, value, path)


def _numbers(name: str) -> Iterator[str]:
    yield from (name, name.removesuffix("s"), name.removesuffix("es"), f"{name.removesuffix('ies')}y")


def _scalar(field: Field, value: Any, path: str) -> Iterator[str]:
    form = field.get("type")
    if isinstance(value, Mapping):
        yield f"{path}: an object is not accepted"
    elif form in ("integer", "number") or field.get("format") in _BITS:
        yield from _number(field, value, path)
    elif form == "boolean" and not isinstance(value, bool) and str(value).lower() not in ("true", "false"):
        yield f"{path}: {value} is no boolean"
    if "enum" in field and value not in field["enum"]:
        yield f"{path}: {value} is not one of {', '.join(field['enum'])}"
    if "pattern" in field and not re.fullmatch(field["pattern"], str(value)):
        yield f"{path}: {value} does not match {field['pattern']}"


def _number(field: Field, value: Any, path: str) -> Iterator[str]:
    try:
        number = float(value)
    except ValueError:
        yield f"{path}: {value} is no number"
        return
    lowest, highest = _BITS.get(field.get("format", ""), (number, number))
    whole = field.get("type") == "number" or number.is_integer()
    if isinstance(value, bool) or not whole or not lowest <= number <= highest:
        yield f"{path}: {value} is no {field.get('format', 'number')}"
