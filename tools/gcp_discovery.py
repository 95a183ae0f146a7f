"""Write the parts of Google's discovery documents that `tests/stacks/google_judge` reads.

    pip download --no-deps google-api-python-client
    python -m tools.gcp_discovery google_api_python_client-*.whl

The package carries the documents. Run it after a new row in `apis.toml` beside the data file.
"""

import argparse
import json
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from infra.engine.golang import ROOT

FOLDER = ROOT / "tests" / "stacks" / "google_judge"
_DOCUMENTS = "googleapiclient/discovery_cache/documents"
_KEPT = ("type", "format", "pattern", "enum")
_OUTPUT = ("Output only", "[Output Only]")


def field(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without its descriptions."""
    found = {name: schema[name] for name in _KEPT if name in schema}
    if schema.get("readOnly") or schema.get("description", "").startswith(_OUTPUT):
        found["output"] = True
    if "$ref" in schema:
        found["ref"] = schema["$ref"]
    if "items" in schema:
        found["items"] = field(schema["items"])
    if "additionalProperties" in schema:
        found["map"] = field(schema["additionalProperties"])
    if "properties" in schema:
        found["fields"] = {name: field(one) for name, one in sorted(schema["properties"].items())}
    return found


def references(schema: Mapping[str, Any]) -> Iterator[str]:
    """The schemas that a field refers to, but for those of outputs."""
    if not schema.get("output"):
        if "ref" in schema:
            yield schema["ref"]
        inside = [schema[name] for name in ("items", "map") if name in schema]
        for one in (*inside, *schema.get("fields", {}).values()):
            yield from references(one)


def main() -> None:
    """Write the data file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    wheel = zipfile.ZipFile(parser.parse_args().wheel)
    rows = tomllib.loads((FOLDER / "apis.toml").read_text()).values()
    found: dict[str, Any] = {}
    for api in sorted({row["schema"].partition(":")[0] for row in rows}):
        document = json.loads(wheel.read(f"{_DOCUMENTS}/{api}.json"))
        todo = {row["schema"].partition(":")[2] for row in rows if row["schema"].startswith(f"{api}:")}
        schemas: dict[str, Any] = {}
        while todo:
            name = todo.pop()
            schemas[name] = field(document["schemas"][name])
            todo |= set(references(schemas[name])) - schemas.keys()
        found[api] = {"revision": document["revision"], "schemas": dict(sorted(schemas.items()))}
    lines = (f"{json.dumps(api)}: {json.dumps(one, separators=(',', ':'))}" for api, one in found.items())
    target = FOLDER / "discovery.json"
    source = Path(wheel.filename or "").name
    head = f'{{"source": "{source}", "apis": {{\n'
    target.write_text(head + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    sys.stdout.write(f"{target.relative_to(ROOT)}: {target.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
