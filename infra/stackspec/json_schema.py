"""The JSON Schema of a stack file, for editors: write with `python -m infra.stackspec.json_schema`."""

import json
from pathlib import Path
from typing import Any

from infra.places import PACKAGES
from infra.stackspec.clusters.large import ClusterSpec
from infra.stackspec.document import REMOVE
from infra.stackspec.load import NAMESPACE
from infra.stackspec.merge import KIND
from infra.stackspec.stack import StackSpec
from infra.stackspec.unions import arms

PATH = PACKAGES / "stacks" / "spec.schema.json"
# Set by the stack file beside the spec, not inside it.
_OUTSIDE = ("name", "region")
# Fields of the spec that are unions, and the setting beside the spec that chooses the arm.
_UNIONS = {"layout": "profile", "on": "cloud"}
# Beside each other, and instead of all others: the file of a cluster of a large stack.
_OF_CLUSTER = {
    f"{NAMESPACE}:of": {"type": "string", "description": "The large stack of which this is a cluster."},
    f"{NAMESPACE}:cluster": {
        "type": "string",
        "description": "Name of the cluster in `layout.clusters` of that stack.",
    },
}
_CLIENT = "Name of the client layer, `clients/<name>.yaml`, between the profile and this file."


def stack_file_schema() -> dict[str, Any]:
    """Draft 2020-12; nothing inside the spec is required, as a layer below may set it.

    The settings beside the spec (`trainstack:profile`, `trainstack:cloud`) decide which arm of a union an
    editor offers: the arms are chosen by `if` and `then`.
    """
    spec = StackSpec.model_json_schema()
    definitions = spec.pop("$defs")
    region = spec["properties"]["region"]
    for name in _OUTSIDE:
        del spec["properties"][name]
    choices = [_chosen(field, setting, spec, definitions) for field, setting in _UNIONS.items()]
    for part in (spec, *definitions.values()):
        if "const" in (tag := part.get("properties", {}).get(KIND, {})):
            tag["description"] = part["description"]  # a tag means what its model does
        if KIND not in part.get("properties", {}):  # a union by kind requires its kind
            part.pop("required", None)
        if "name" in part.get("properties", {}):
            part["properties"][REMOVE] = {"const": True, "description": "Leave this item out."}
    _chosen_by_cluster(definitions)
    properties = {
        f"{NAMESPACE}:cloud": {"enum": [*arms(StackSpec.model_fields["on"])]},
        f"{NAMESPACE}:profile": {"enum": [*arms(StackSpec.model_fields["layout"])]},
        f"{NAMESPACE}:region": region,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "trainstack stack file",
        "type": "object",
        "required": ["config"],
        "properties": {
            "config": {
                "type": "object",
                "anyOf": [{"required": sorted(properties)}, {"required": sorted(_OF_CLUSTER)}],
                "properties": {
                    **properties,
                    **_OF_CLUSTER,
                    f"{NAMESPACE}:client": {"type": "string", "description": _CLIENT},
                    f"{NAMESPACE}:spec": spec,
                },
                "allOf": [choice for group in choices for choice in group],
            }
        },
        "$defs": definitions,
    }


def _chosen(
    field: str, setting: str, spec: dict[str, Any], definitions: dict[str, Any]
) -> list[dict[str, Any]]:
    """Replace a union in the spec by a choice that a setting makes."""
    described = spec["properties"][field].get("description", "")
    spec["properties"][field] = {"type": "object", "description": described}
    choices = []
    for tag, arm in arms(StackSpec.model_fields[field]).items():
        # The tag is the setting itself and not part of the spec.
        definitions[arm.__name__]["properties"].pop(setting, None)
        then: dict[str, Any] = {"properties": {field: {"$ref": f"#/$defs/{arm.__name__}"}}}
        choices.append(
            {
                "if": {
                    "properties": {f"{NAMESPACE}:{setting}": {"const": tag}},
                    "required": [f"{NAMESPACE}:{setting}"],
                },
                "then": {"properties": {f"{NAMESPACE}:spec": then}},
            }
        )
    return choices


def _chosen_by_cluster(definitions: dict[str, Any]) -> None:
    """Replace the union of a cluster's `on` by a choice that its `cloud` makes."""
    cluster = definitions[ClusterSpec.__name__]
    described = cluster["properties"]["on"]["description"]
    cluster["properties"]["on"] = {"type": ["object", "null"], "description": described}
    cluster["allOf"] = [
        {
            "if": {"properties": {"cloud": {"const": tag}}, "required": ["cloud"]},
            "then": {"properties": {"on": {"$ref": f"#/$defs/{arm.__name__}"}}},
        }
        for tag, arm in arms(ClusterSpec.model_fields["on"]).items()
    ]


def text() -> str:
    """The text of the committed schema."""
    return json.dumps(stack_file_schema(), indent=2) + "\n"


def write(path: Path = PATH) -> None:
    """Write the schema file."""
    path.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write()
