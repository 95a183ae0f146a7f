"""The real CustomResourceDefinitions of the pinned Kueue, and whether an object fits its own."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[4]


def crds() -> Mapping[str, dict[str, Any]]:
    """Kind -> the OpenAPI schema of v1beta2, from the pinned module."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go here to fetch Kueue's CustomResourceDefinitions with")
    command = [go, "mod", "download", "-json", "sigs.k8s.io/kueue"]
    done = subprocess.run(
        command,
        cwd=ROOT / "tools" / "control-plane",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"Kueue's module cannot be had here: {(done.stdout + done.stderr).strip()[-300:]}")
    folder = Path(json.loads(done.stdout)["Dir"]) / "config" / "components" / "crd" / "bases"
    found: dict[str, dict[str, Any]] = {}
    for path in folder.glob("kueue.x-k8s.io_*.yaml"):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        for version in document["spec"]["versions"]:
            if version["name"] == "v1beta2":
                found[document["spec"]["names"]["kind"]] = closed(version["schema"]["openAPIV3Schema"])
    return found


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as the API server applies it: int-or-string understood, unknown fields refused."""
    schema = {key: value for key, value in schema.items() if key != "format"}
    if schema.pop("x-kubernetes-int-or-string", False):
        schema.pop("type", None)
        schema["anyOf"] = [{"type": "integer"}, {"type": "string", "pattern": schema.pop("pattern", ".*")}]
    if "pattern" in schema:  # Go's spelling of a pattern that ignores case
        schema["pattern"] = schema["pattern"].replace("^(?i)", "(?i)^")
    if "properties" in schema:
        schema["properties"] = {key: closed(value) for key, value in schema["properties"].items()}
        schema.setdefault("additionalProperties", False)
    if isinstance(schema.get("additionalProperties"), dict):
        schema["additionalProperties"] = closed(schema["additionalProperties"])
    if "items" in schema:
        schema["items"] = closed(schema["items"])
    return schema


def validate(schema: dict[str, Any], body: Mapping[str, Any]) -> None:
    # Metadata is the API machinery's own and is not part of a CustomResourceDefinition.
    jsonschema.validate({key: value for key, value in body.items() if key != "metadata"}, schema)
