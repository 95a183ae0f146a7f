"""The JSON Schema of a stack file, for editors: `python -m infra.spec.json_schema` writes it anew."""

import json
from pathlib import Path
from typing import Any

from infra.spec.document import REMOVE
from infra.spec.load import NAMESPACE, ROOT, SETTINGS
from infra.spec.stack import StackSpec

PATH = ROOT / "stacks" / "spec.schema.json"
# Set by the stack file beside the spec, not inside it.
_OUTSIDE = ("name", *SETTINGS)


def stack_file_schema() -> dict[str, Any]:
    """Draft 2020-12; nothing inside the spec is required, because the profile may supply it."""
    spec = StackSpec.model_json_schema()
    definitions = spec.pop("$defs")
    settings = {name: spec["properties"][name] for name in SETTINGS}
    for name in _OUTSIDE:
        del spec["properties"][name]
    for part in (spec, *definitions.values()):
        part.pop("required", None)
        if "name" in part.get("properties", {}):
            part["properties"][REMOVE] = {"const": True, "description": "Leave out this item of the profile."}
    properties = {f"{NAMESPACE}:{name}": schema for name, schema in settings.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "trainstack stack file",
        "type": "object",
        "required": ["config"],
        "properties": {
            "config": {
                "type": "object",
                "required": sorted(properties),
                "properties": {**properties, f"{NAMESPACE}:spec": spec},
            }
        },
        "$defs": definitions,
    }


def text() -> str:
    """The schema as it is committed."""
    return json.dumps(stack_file_schema(), indent=2) + "\n"


def write(path: Path = PATH) -> None:
    """Write the schema file."""
    path.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write()
