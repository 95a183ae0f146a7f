"""Verdicts of Google's product files, from which the Google provider is generated.

A checkout of GoogleCloudPlatform/magic-modules has one YAML file for each resource (mmv1/products). What
follows from `immutable`, `update_url`, `default_from_api` and `default_value` is as in mmv1/api/type.go
(IsForceNew) and mmv1/templates/terraform/schema_property.go.tmpl.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Row = Mapping[str, Any]


def verdicts(checkout: Path) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(the provider's type, steps of a property joined by dots, kind of change -> verdict)."""
    for folder in sorted((checkout / "mmv1" / "products").iterdir()):
        product = folder / "product.yaml"
        if not product.is_file():
            continue
        service = str((_read(product) or {}).get("legacy_name") or folder.name)
        for file in sorted(folder.glob("*.yaml")):
            resource = _read(file) if file != product else None
            # Written by hand, or with code of its own that may change what a plan does.
            if not isinstance(resource, dict) or resource.get("exclude_resource"):
                continue
            if not (resource.get("custom_code") or {}).get("constants") and not resource.get("custom_diff"):
                name = str(
                    resource.get("legacy_name") or f"google_{_snake(service)}_{_snake(str(resource['name']))}"
                )
                yield from _resource(name, resource)


def _read(file: Path) -> Any:
    """The document, or None for an old form of it."""
    try:
        return yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return None


def _resource(name: str, resource: Row) -> Iterator[tuple[str, str, dict[str, str]]]:
    fixed = bool(resource.get("immutable"))
    for one in (*(resource.get("parameters") or ()), *(resource.get("properties") or ())):
        yield from _property(name, resource, one, [], above=fixed)


def _property(
    name: str, resource: Row, one: Row, steps: list[str], *, above: bool
) -> Iterator[tuple[str, str, dict[str, str]]]:
    kind, here = str(one.get("type")), [*steps, _snake(str(one["name"]))]
    if one.get("output") or kind.startswith("KeyValue") or one.get("diff_suppress_func"):
        return
    if one.get("flatten_object") or one.get("min_version") or one.get("removed_message"):
        return
    replaces = bool(one.get("immutable")) or (above and not one.get("update_url"))
    inner = one.get("properties") or (one.get("item_type") or {}).get("properties")
    if inner:
        for below in inner if len(here) < 2 else ():
            yield from _property(name, resource, below, here, above=above and replaces)
        return
    if one.get("custom_expand") or one.get("state_func") or one.get("is_set"):
        return
    yield name, ".".join(here), dict(_kinds(one, "replace" if replaces else "update", kind))


def _kinds(one: Row, effect: str, kind: str) -> Iterator[tuple[str, str]]:
    if kind == "Enum" and one.get("enum_values") and len(one["enum_values"]) < 2:
        return
    yield "changed", effect
    if one.get("required"):
        return
    if one.get("default_from_api"):
        yield "left out", "none"
        yield "stated", "none"
        return
    default = one.get("default_value")
    given = {"Boolean": True, "Integer": 1, "Double": 1}.get(kind)
    yield "left out", "none" if default is not None and default == given else effect
    yield "added", "none" if default is not None and default == given else effect


def _snake(name: str) -> str:
    found = ""
    for index, letter in enumerate(name):
        follows = index > 0 and letter.isupper()
        ends = follows and (
            not name[index - 1].isupper() or (index + 1 < len(name) and name[index + 1].islower())
        )
        found += f"_{letter.lower()}" if ends else letter.lower()
    return found
