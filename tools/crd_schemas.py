"""Derive the rehearsal's schemas of Kueue's objects from the definitions of the pinned module.

Run `python tools/crd_schemas.py` after changing the version in go.mod. Descriptions and status are
left out, and Workload, which only Kueue itself writes.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "rehearsal" / "kubernetes" / "rules" / "objects" / "crd_schemas.json"
_LEFT_OUT = ("description", "x-kubernetes-list-type", "x-kubernetes-validations")


def module() -> dict[str, str]:
    """The folder and version of the module. Raises RuntimeError without Go, or where it cannot be had."""
    go = shutil.which("go")
    if go is None:
        raise RuntimeError("no Go here to fetch Kueue's CustomResourceDefinitions with")
    command = [go, "mod", "download", "-json", "sigs.k8s.io/kueue"]
    folder = ROOT / "tools" / "control-plane"
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).strip()[-300:])
    found: dict[str, str] = json.loads(done.stdout)
    return found


def derive(folder: Path, version: str) -> dict[str, Any]:
    """The contents of the data file, from the module's folder."""
    schemas: dict[str, dict[str, Any]] = {}
    for path in sorted((folder / "config" / "components" / "crd" / "bases").glob("kueue.x-k8s.io_*.yaml")):
        spec = yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]
        for row in spec["versions"]:
            if row["served"] and spec["names"]["kind"] != "Workload":
                schema = _plain(row["schema"]["openAPIV3Schema"])
                schema["properties"].pop("status", None)
                schemas.setdefault(f"{spec['group']}/{row['name']}", {})[spec["names"]["kind"]] = schema
    source = "sigs.k8s.io/kueue config/components/crd/bases: types, bounds and patterns"
    return {"source": source, "version": version, "schemas": schemas}


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in schema.items() if key not in _LEFT_OUT}
    if "properties" in found:
        found["properties"] = {name: _plain(value) for name, value in found["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _plain(found[key])
    return found


def main() -> None:
    """Write the data file."""
    found = module()
    text = json.dumps(derive(Path(found["Dir"]), found["Version"]), separators=(",", ":"), sort_keys=True)
    TARGET.write_text(text + "\n")
    sys.stdout.write(f"{TARGET.relative_to(ROOT)}: {len(text)} bytes\n")


if __name__ == "__main__":
    main()
