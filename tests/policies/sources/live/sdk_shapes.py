"""Shapes of resources in the Pulumi SDK, for comparison with the tables."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from policies.resource import is_unknown
from policies.rules import CATALOG
from policies.sources.live.mapping import Each, One
from rehearsal.core import sdk_types

RULES = Path(__file__).resolve().parents[4] / "policies" / "rules"


def state_of(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(properties, objects) of what the SDK reads of a type."""
    cls = sdk_types.resource_class(token)
    assert cls is not None, token
    reader = sdk_types._Reader()
    own = reader.properties(getattr(sys.modules[cls.__module__], f"_{cls.__name__}State"))
    return own, reader.objects


def nested(form: Any, objects: dict[str, Any]) -> tuple[bool, dict[str, Any] | None]:
    """(whether it is a list, the properties of the object in it)."""
    if isinstance(form, dict) and "union" in form:
        return nested(next(one for one in form["union"] if isinstance(one, dict)), objects)
    if isinstance(form, dict) and "list" in form:
        return True, nested(form["list"], objects)[1]
    if isinstance(form, dict) and "object" in form:
        return False, objects[form["object"]]
    return False, None


def held_against(shape: Any, properties: dict[str, Any], objects: dict[str, Any], where: str) -> None:
    for name, how in shape.items():
        assert name in properties, f"{where}.{name}"
        listed, inside = nested(properties[name]["type"], objects)
        if isinstance(how, Each | One):
            assert inside is not None, f"{where}.{name}"
            assert listed is isinstance(how, Each), f"{where}.{name}"
            held_against(how.shape, inside, objects, f"{where}.{name}")


def named(cloud: str) -> set[str]:
    """Every type of a cloud that rules are about, or name in their code."""
    written = re.compile(rf'"({cloud}:[A-Za-z0-9]+/[A-Za-z0-9]+:[A-Za-z0-9]+)"')
    about = {kind for rule in CATALOG.rules.values() for kind in rule.kinds}
    return {
        *(kind for kind in about if kind.startswith(f"{cloud}:")),
        *(found for file in RULES.rglob("*.py") for found in written.findall(file.read_text())),
    }


def strange(value: Any, properties: dict[str, Any], objects: dict[str, Any], where: str) -> Iterator[str]:
    """What stands in properties and the SDK does not have, at any depth."""
    for name in dict.keys(value):
        if name not in properties:
            yield f"{where}.{name}"
            continue
        listed, inside = nested(properties[name]["type"], objects)
        below = dict.get(value, name)
        if inside is not None and not is_unknown(below):
            rows = below if isinstance(below, list) else [below]
            if isinstance(below, list) is not listed:
                yield f"{where}.{name} is {'no' if listed else 'a'} list"
            for row in rows:
                yield from strange(row, inside, objects, f"{where}.{name}")
