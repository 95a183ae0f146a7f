"""Pairs of configurations that differ in one property, and what the emulated provider says of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.core.model import Diff
from rehearsal.core.schema import Property, ResourceSchema
from tests.rehearsal.driver import Driver

KINDS = ("changed", "left out", "stated", "added")
"""Another value; no value any more; the value that the cloud computed; a value where none was."""


@dataclass(frozen=True)
class Pair:
    """A property of a type, without package and indices, and a verdict: `none`, `update` or `replace`."""

    token: str
    path: str
    kind: str
    verdict: str = ""


def read(file: Path) -> tuple[str, list[Pair]]:
    """The judge, and its pairs: one line for each type and property, with the verdict for each kind."""
    document = json.loads(file.read_text(encoding="utf-8"))
    rows = [
        Pair(token, path, kind, verdict)
        for token, paths in document["types"].items()
        for path, verdicts in paths.items()
        for kind, verdict in verdicts.items()
    ]
    return document["judge"], rows


def write(file: Path, judge: str, pairs: list[Pair]) -> None:
    """Write what `read` reads."""
    types: dict[str, dict[str, dict[str, str]]] = {}
    for one in pairs:
        types.setdefault(one.token, {}).setdefault(one.path, {})[one.kind] = one.verdict
    lines = (
        f"{json.dumps(token)}: {json.dumps(paths, separators=(',', ':'))}" for token, paths in types.items()
    )
    head = f'{{"judge": {json.dumps(judge)}, "types": {{\n'
    file.write_text(head + ",\n".join(lines) + "\n}}\n", encoding="utf-8")


def verdict(driver: Driver, schema: ResourceSchema, pair: Pair) -> tuple[str, Diff]:
    """The effect of a pair's change: `none`, `update`, `may` (an update that may replace) or `replace`."""
    without, first, second = values(schema, pair.path)
    old, state, new = {
        "changed": (first, first, second),
        "left out": (first, first, without),
        "stated": (without, first, first),
        "added": (without, without, first),
    }[pair.kind]
    driver.said.clear()
    call = driver.call(schema.token, "x")
    found = driver.cloud.diff(call, "x", old, state, new)
    if found.replaces:
        return "replace", found
    return ("may" if driver.said else "update") if found.changed else "none", found


def values(schema: ResourceSchema, path: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Inputs without the property, and with each of two values; the blocks around it are there."""
    return _within(schema, schema.inputs, path.split("."))


def _within(
    schema: ResourceSchema, fields: Mapping[str, Property], steps: list[str]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    name, *rest = steps
    form = fields[name].type
    if not rest:
        one, other = sample(schema, form, "a"), sample(schema, form, "b")
        return {}, {name: one}, {name: other}
    many = isinstance(form, dict) and "list" in form
    inner = _within(schema, schema.objects[(form["list"] if many else form)["object"]], rest)
    without, first, second = ({name: [value] if many else value} for value in inner)
    return without, first, second


def sample(schema: ResourceSchema, form: Any, which: str) -> Any:
    """A value of a type, one of two."""
    if isinstance(form, str):
        number = 1 if which == "a" else 2
        return {"bool": which == "a", "int": number, "float": number}.get(form, f"value-{which}")
    if "list" in form:
        return [sample(schema, form["list"], which)]
    if "map" in form:
        return {"key": sample(schema, form["map"], which)}
    if "object" in form:
        fields = schema.objects[form["object"]]
        return {name: sample(schema, field.type, which) for name, field in fields.items() if field.required}
    return form["one_of"][0 if which == "a" else -1] if "one_of" in form else f"value-{which}"
