"""Resources of a Terraform module as the rules read them: Pulumi's types, names and forms of properties.

Pulumi's packages are made from the same providers (pulumi-terraform-bridge, pkg/tfbridge/names.go): names
become camelCase, lists of blocks a plural, blocks that may occur once an object. The installed SDK says which
of these a property is.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.peers.hcl import Block
from benchmarks.peers.terraform import BUCKETS, Evaluation, Module, below, computed
from policies.resource import Resource, UnknownValue, is_unknown, partly
from rehearsal.core.schema import Property, ResourceSchema

_META = frozenset(
    ("count", "for_each", "depends_on", "provider", "lifecycle", "provisioner", "connection", "timeouts")
)
_DOCUMENTS = ("policy", "assume_role_policy", "inline_policy", "access_policies")
_TRUE, _FALSE = ("true", "1"), ("false", "0")
Schema = Callable[[str], ResourceSchema | None]


@cache
def types() -> Mapping[str, str]:
    """Pulumi's type by Terraform's."""
    text = (Path(__file__).parent / "types.toml").read_text(encoding="utf-8")
    found: dict[str, str] = tomllib.loads(text)["types"]
    return found


@dataclass
class Converted:
    """Resources by address, and what could not be converted, as (address, attribute)."""

    resources: dict[str, Resource] = field(default_factory=dict)
    unread: list[tuple[str, str]] = field(default_factory=list)


def convert(module: Module, schema: Schema) -> Converted:
    """Convert the resources whose type is known; others are only targets of references."""
    made = Converted()
    for address, block in module.resources.items():
        kind = types().get(block.labels[0], "")
        found = schema(kind) if kind else None
        if found is not None:
            made.resources[address] = _Conversion(module, found, made).resource(address, block)
    return made


def urn_of(address: str, kind: str) -> str:
    """The URN of a resource of an example."""
    return f"urn:pulumi:example::peers::{kind}::{address}"


class _Conversion:
    """Converts one resource."""

    def __init__(self, module: Module, schema: ResourceSchema, made: Converted) -> None:
        self._module, self._schema, self._made = module, schema, made
        self._address = ""
        self._used: dict[str, list[str]] = {}
        self._top = ""

    def resource(self, address: str, block: Block) -> Resource:
        self._address = address
        asked = self._object(block, self._schema.inputs, "")
        identity = Evaluation(self._module).identity(address)
        props: dict[str, Any] = dict(dict.items(asked))
        for name, attribute in (("arn", "arn"), ("selfLink", "self_link"), ("name", "name")):
            if name in self._schema.outputs and name not in props:
                props[name] = computed(address, attribute, identity)
        if bucket := BUCKETS.get(block.labels[0]):
            props[bucket] = identity
        given = (_plain(props, key) for key in ("tags", "labels"))
        tags: Mapping[str, Any] = next((one for one in given if isinstance(one, dict)), {})
        kind = self._schema.token
        references = {
            name: tuple(urn_of(one, types().get(one.partition(".")[0], "")) for one in used)
            for name, used in self._used.items()
        }
        return Resource(
            kind=kind,
            urn=urn_of(address, kind),
            name=block.labels[1],
            id=identity,
            props=partly(props),
            asked=asked,
            tags=tags,
            references=references,
            dependencies=tuple(urn for urns in references.values() for urn in urns),
        )

    def _object(self, block: Block, properties: Mapping[str, Property], path: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, expression in block.attributes.items():
            if not path and name in _META:
                continue
            found = _property(name, properties)
            self._top = found or _camel(name) if not path else self._top
            is_text = name.endswith(_DOCUMENTS) or name in BUCKETS.values()
            evaluation = Evaluation(self._module, document=is_text)
            value = evaluation.value(expression, f"{path}{found or _camel(name)}")
            self._note(evaluation.used)
            if not found:
                self._made.unread.append((self._address, f"{path}{name}"))
                made[_camel(name)] = value
            elif value is not None:
                made[found] = self._fitted(value, properties[found].type, f"{path}{found}")
        for name in dict.fromkeys(_names(block, frozenset() if path else _META)):
            found = _property(name, properties)
            if not found:
                self._made.unread.append((self._address, f"{path}{name}"))
                continue
            self._top = self._top if path else found
            inner = [one for _, one in below(block, name)]
            made[found] = self._blocks(inner, properties[found].type, f"{path}{found}")
        return partly(made)

    def _note(self, used: Iterable[str]) -> None:
        self._used.setdefault(self._top, []).extend(used)

    def _blocks(self, blocks: list[Block], form: Any, path: str) -> Any:
        inner = form.get("list", form) if isinstance(form, dict) else form
        # Without fields of its own it is a map that is written as a block.
        named = isinstance(inner, dict) and "object" in inner
        fields = self._schema.objects[inner["object"]] if named else {}
        made = [self._object(one, fields, f"{path}.") for one in blocks]
        listed = isinstance(form, dict) and "list" in form
        return made if listed else (made[0] if made else {})

    def _fitted(self, value: Any, form: Any, path: str) -> Any:
        """A value in the form of the property's type."""
        if is_unknown(value):
            return value
        if not isinstance(form, dict):
            return _scalar(value, form, path)
        if "list" in form:
            values = value if isinstance(value, list) else [value]
            return [self._fitted(one, form["list"], path) for one in values]
        if "object" in form:
            if isinstance(value, list):
                value = value[0] if value else {}
            return self._renamed(value, self._schema.objects[form["object"]], path)
        return value

    def _renamed(self, value: Any, fields: Mapping[str, Property], path: str) -> Any:
        if is_unknown(value) or not isinstance(value, dict):
            return value
        made: dict[str, Any] = {}
        for name in value:
            found, one = _property(name, fields), dict.get(value, name)
            if one is None:
                continue
            made[found or _camel(name)] = (
                self._fitted(one, fields[found].type, f"{path}.{found}") if found else one
            )
        return partly(made)


def _scalar(value: Any, form: str, path: str) -> Any:
    """As Terraform converts it: texts to booleans and numbers, and back."""
    if form == "bool" and isinstance(value, str):
        return value.lower() in _TRUE if value.lower() in (*_TRUE, *_FALSE) else value
    if form == "int" and isinstance(value, str):
        return int(value) if value.lstrip("-").isdigit() else UnknownValue(path, "is no number")
    if form == "str" and isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return value


def _names(block: Block, without: frozenset[str]) -> Iterator[str]:
    for one in block.blocks:
        name = one.labels[0] if one.kind == "dynamic" and one.labels else one.kind
        if name not in without:
            yield name


def _property(name: str, properties: Mapping[str, Property]) -> str:
    """Pulumi's name of an attribute or block; empty if there is none."""
    whole = _camel(name).lower()
    plurals = (whole, f"{whole}s", f"{whole}es", f"{whole[:-1]}ies" if whole.endswith("y") else whole)
    known = {one.lower(): one for one in properties}
    return next((known[one] for one in plurals if one in known), "")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other[:1].upper() + other[1:] for other in others)


def _plain(props: Mapping[str, Any], key: str) -> Any:
    value = dict.get(props, key) if isinstance(props, dict) else None
    return None if is_unknown(value) else value
