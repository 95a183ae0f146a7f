"""Derive crds.json, the schemas that rendered objects are held against, from the projects' own definitions.

Run `python tests/infra/launchers/derive_schemas.py` after changing a version; it needs Go, which
fetches the modules. Descriptions, status and pod templates are left out: pods are held against the types of
the SDK.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

TARGET = Path(__file__).with_name("crds.json")
SOURCES = (
    ("sigs.k8s.io/jobset", "v0.12.0", "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"),
    ("github.com/kubeflow/trainer/v2", "v2.2.1", "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"),
    (
        "github.com/kubeflow/trainer/v2",
        "v2.2.1",
        "manifests/base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml",
    ),
    ("github.com/kubeflow/training-operator", "v1.9.0", "manifests/base/crds/kubeflow.org_pytorchjobs.yaml"),
    ("github.com/kubeflow/mpi-operator", "v0.8.0", "manifests/base/kubeflow.org_mpijobs.yaml"),
)
_LEFT_OUT = (
    "description",
    "format",
    "x-kubernetes-map-type",
    "x-kubernetes-list-type",
    "x-kubernetes-validations",
)


def folder(module: str, version: str) -> Path:
    """Where the module lies once Go has fetched it. Raises RuntimeError where it cannot be had."""
    go = shutil.which("go")
    if go is None:
        raise RuntimeError("no Go here to fetch the definitions with")
    command = [go, "mod", "download", "-json", f"{module}@{version}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).strip()[-300:])
    return Path(json.loads(done.stdout)["Dir"])


def derive() -> dict[str, Any]:
    """The contents of the data file."""
    found: dict[str, Any] = {}
    for module, version, path in SOURCES:
        spec = yaml.safe_load((folder(module, version) / path).read_text(encoding="utf-8"))["spec"]
        for row, schema in _served(spec):
            name = f"{spec['group']}/{row} {spec['names']['kind']}"
            found[name] = {"source": f"{module} {version} {path}", "schema": schema}
    return found


def _served(spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in spec["versions"]:
        if row["served"]:
            schema = _plain(row["schema"]["openAPIV3Schema"])
            schema["properties"].pop("status", None)
            yield row["name"], schema


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    if "containers" in properties and "hostNetwork" in properties:
        return {"type": "object"}  # a whole pod
    found = {key: value for key, value in schema.items() if key not in _LEFT_OUT}
    if properties:
        found["properties"] = {name: _plain(value) for name, value in properties.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _plain(found[key])
    return found


if __name__ == "__main__":
    text = json.dumps(derive(), separators=(",", ":"), sort_keys=True)
    TARGET.write_text(text + "\n")
    sys.stdout.write(f"{TARGET.name}: {len(text)} bytes\n")
