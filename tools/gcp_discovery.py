"""Write the parts of Google's discovery documents that the judge of stacks and the rehearsal read.

    pip download --no-deps google-api-python-client
    python -m tools.gcp_discovery google_api_python_client-*.whl

The package carries the documents. `discovery.json` is for `tests/stacks/google_judge`; `services.json` has
the values that only a service judges, for the rehearsal. Run it after a new row in `apis.toml`, and after
`tools.gcp_provider`.
"""

import argparse
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from infra.engine.golang import ROOT
from rehearsal.core.schema import Schemas
from rehearsal.gcp.provider import SERVICES, facts
from tests.stacks.google_judge.discovery import FOLDER, Judge, apis

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


def of_services(schemas: Schemas) -> dict[str, dict[str, list[str]]]:
    """Type -> property path -> values that the service accepts, where the provider lists none."""
    found: dict[str, dict[str, list[str]]] = {}
    for token in sorted(apis()):
        schema = schemas.resource(f"gcp:{token}")
        assert schema is not None, token
        known = facts()[token]
        found[token] = {
            path: values
            for path, values in Judge(token).words(schema)
            if path not in known.get("words", {}) and path not in known.get("words_any_case", {})
        }
    return {token: words for token, words in found.items() if words}


def main() -> None:
    """Write the data files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    wheel = zipfile.ZipFile(parser.parse_args().wheel)
    found: dict[str, Any] = {}
    wanted = [row["schema"].partition(":")[::2] for row in apis().values()]
    for api in sorted({api for api, _ in wanted}):
        document = json.loads(wheel.read(f"{_DOCUMENTS}/{api}.json"))
        todo = {schema for one, schema in wanted if one == api}
        reached: dict[str, Any] = {}
        while todo:
            name = todo.pop()
            reached[name] = field(document["schemas"][name])
            todo |= set(references(reached[name])) - reached.keys()
        found[api] = {"revision": document["revision"], "schemas": dict(sorted(reached.items()))}
    lines = (f"{json.dumps(api)}: {json.dumps(one, separators=(',', ':'))}" for api, one in found.items())
    target = FOLDER / "discovery.json"
    source = Path(wheel.filename or "").name
    head = f'{{"source": "{source}", "apis": {{\n'
    target.write_text(head + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    schemas = Schemas("gcp", ROOT / ".trainstack" / "cache" / "schemas")
    rows = (f"{json.dumps(token)}: {json.dumps(one)}" for token, one in of_services(schemas).items())
    schemas.close()
    SERVICES.write_text(head.replace("apis", "types") + ",\n".join(rows) + "\n}}\n", encoding="utf-8")
    for file in (target, SERVICES):
        sys.stdout.write(f"{file.relative_to(ROOT)}: {file.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
