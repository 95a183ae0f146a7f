"""Makes the resources of the file that EXAMPLE names, without the SDK of any cloud."""

import json
import os
from pathlib import Path
from typing import Any

import pulumi

SETTINGS: dict[str, dict[str, Any]] = {
    "aws": {"region": "us-east-1"},
    "gcp": {"project": "example", "region": "us-central1"},
    "kubernetes": {},
}


class Raw(pulumi.CustomResource):
    """A resource of any type; its properties are Pulumi's own, in camelCase."""


def referred(value: Any) -> list[tuple[str, str]]:
    """(name, property) of every reference in a value."""
    if isinstance(value, dict):
        return [one for item in value.values() for one in referred(item)]
    if isinstance(value, list):
        return [one for item in value for one in referred(item)]
    if isinstance(value, str) and value.startswith("$"):
        name, _, attribute = value[1:].partition(".")
        return [(name, attribute or "id")]
    return []


def resolved(value: Any, made: dict[str, Raw]) -> Any:
    """The value with outputs in place of references."""
    if isinstance(value, dict):
        return {key: resolved(item, made) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved(item, made) for item in value]
    if isinstance(value, str) and value.startswith("$"):
        ((name, attribute),) = referred(value)
        return made[name].id if attribute == "id" else made[name].__dict__[attribute]
    return value


def main() -> None:
    """Make them in the order of the file, in which references go backwards."""
    example = json.loads(Path(os.environ["EXAMPLE"]).read_text())
    asked = {one for item in example.values() for one in referred(item["props"])}
    packages = {item["token"].split(":")[0] for item in example.values()}
    providers = {name: pulumi.ProviderResource(name, name, SETTINGS[name]) for name in sorted(packages)}
    made: dict[str, Raw] = {}
    for name, item in example.items():
        outputs = {attribute: None for other, attribute in asked if other == name and attribute != "id"}
        options = pulumi.ResourceOptions(
            provider=providers[item["token"].split(":")[0]],
            protect=item["protect"] or None,
            depends_on=[made[other] for other in item["after"]],
        )
        made[name] = Raw(item["token"], name, {**outputs, **resolved(item["props"], made)}, options)


main()
