"""The schema of the component plugin is frozen, complete, and the one that the plugin answers with."""

import ast
import copy
import json
from typing import Any

import pulumi
import pytest

from components.base import Component
from infra.errors import UserError
from plugin import documentation, renewal, schema
from plugin.exposed import EXPOSED, LEFT_OUT
from tests.test_structure import ROOT, python


def components() -> set[str]:
    """Every component that a module defines, by the text of its class: no SDK is imported."""
    found = set()
    for path in python():
        if path.parts[0] == "components":
            for node in ast.parse((ROOT / path).read_text()).body:
                if isinstance(node, ast.ClassDef) and any(
                    ast.unparse(base) == "Component" for base in node.bases
                ):
                    found.add(node.name)
    return found


def test_every_component_is_exposed_or_left_out_with_a_reason() -> None:
    assert components() == EXPOSED.keys() | LEFT_OUT.keys()
    assert EXPOSED.keys() & LEFT_OUT.keys() == set()
    assert all(LEFT_OUT.values())


def test_the_schema_is_that_of_the_components() -> None:
    """Otherwise: `python -m plugin.renewal`."""
    assert schema.FILE.read_text() == schema.text()


def test_every_property_is_described() -> None:
    content = json.loads(schema.FILE.read_text())
    described = [*content["resources"].items(), *content["types"].items()]
    parts = ("inputProperties", "properties")
    assert len(described) > 80
    assert [
        f"{token} {name}"
        for token, one in described
        for part in parts
        for name, found in one.get(part, {}).items()
        if not found.get("description")
    ] == []


def test_the_page_is_made_from_the_schema() -> None:
    """Otherwise: `python -m plugin.renewal`."""
    assert documentation.FILE.read_text() == documentation.page(json.loads(schema.FILE.read_text()))


SMALL: dict[str, Any] = {
    "resources": {
        "trainstack:index:A": {
            "inputProperties": {"size": {"type": "integer"}},
            "requiredInputs": ["size"],
            "properties": {"id": {"type": "string"}},
            "required": ["id"],
        }
    },
    "types": {"trainstack:index:T": {"properties": {"x": {"type": "string"}}, "required": []}},
}


def changed(**paths: Any) -> dict[str, Any]:
    """The schema with values at paths such as `resources.A.inputProperties.size`; None removes."""
    found = copy.deepcopy(SMALL)
    for path, value in paths.items():
        kind, name, *rest = path.split("__")
        one = found[kind]
        for step in (f"trainstack:index:{name}", *rest[:-1]):
            one = one[step] if rest else one
        key = rest[-1] if rest else f"trainstack:index:{name}"
        one.pop(key)
        if value is not None:
            one[key] = value
    return found


@pytest.mark.parametrize(
    ("new", "broken"),
    [
        (SMALL, []),
        (changed(resources__A__inputProperties__size={"type": "integer", "description": "other"}), []),
        (changed(resources__A__inputProperties__size={"type": "string"}), ["A.inputProperties.size"]),
        (changed(resources__A__inputProperties__size=None), ["A.inputProperties.size"]),
        (changed(resources__A__properties__id=None), ["A.properties.id"]),
        (changed(resources__A__required=[]), ["A.properties.id"]),
        (changed(resources__A=None), ["A"]),
        (changed(types__T__required=["x"]), ["T.properties.x"]),
        (changed(types__T__properties__x={"type": "string", "plain": True}), ["T.properties.x"]),
    ],
)
def test_what_breaks_programs_is_found(new: dict[str, Any], broken: list[str]) -> None:
    assert [change.path for change in renewal.breaking(SMALL, new)] == broken


def test_a_new_property_breaks_programs_only_where_it_is_required() -> None:
    new = copy.deepcopy(SMALL)
    new["resources"]["trainstack:index:A"]["inputProperties"]["more"] = {"type": "string"}
    assert list(renewal.breaking(SMALL, new)) == []
    new["resources"]["trainstack:index:A"]["requiredInputs"].append("more")
    assert [change.path for change in renewal.breaking(SMALL, new)] == ["A.inputProperties.more"]


def test_a_breaking_change_needs_a_note() -> None:
    new = changed(resources__A__inputProperties__size=None)
    with pytest.raises(UserError) as refused:
        renewal.check(SMALL, new, {})
    assert refused.value.codes == (("schema-change-without-note", "A.inputProperties.size"),)
    renewal.check(SMALL, new, {"A.inputProperties.size": "Removed in 0.2.0: use `length`."})


def test_an_attribute_keeps_its_name_in_programs_in_python() -> None:
    assert Component.output_name("vpc_id") == "vpc_id"
    assert issubclass(Component, pulumi.ComponentResource)
