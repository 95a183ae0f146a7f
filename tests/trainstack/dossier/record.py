"""Record what reports are tested with: states and validations of rehearsed stacks, without what is not read.

`python -m tests.trainstack.dossier.record dev-aws small-gcp`, after `trainstack up --rehearse` of both.
"""

import gzip
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.engine.golang import ROOT
from rehearsal.projects import homes
from trainstack.cli.operations.session import open_engine

FOLDER = Path(__file__).parent / "recorded"
_KEPT = (
    "urn",
    "type",
    "custom",
    "id",
    "parent",
    "provider",
    "dependencies",
    "propertyDependencies",
    "protect",
)
_LONG = 4000


def _slim(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without secrets, times and long texts, and of objects of a cluster only their names."""
    made = {key: row[key] for key in _KEPT if row.get(key)}
    kubernetes = str(row["type"]).startswith("kubernetes:")
    for part in ("inputs", "outputs"):
        given = row.get(part) or {}
        kept = _named(given) if kubernetes and part == "inputs" else {} if kubernetes else given
        made[part] = {
            key: value
            for key, value in kept.items()
            if len(text := json.dumps(value)) < _LONG and "1b47061264138c4ac30d75fd1eb44270" not in text
        }
    if made["outputs"] == made["inputs"]:
        del made["outputs"]
    made["propertyDependencies"] = {
        key: urns for key, urns in (row.get("propertyDependencies") or {}).items() if urns
    }
    if made["urn"].endswith("-watch") or made["urn"].endswith("-job"):
        made["modified"] = "2026-11-28T16:16:00Z"
    return made


def _named(given: Mapping[str, Any]) -> dict[str, Any]:
    """An object of a cluster: its name, and of a validation its size and its pool."""
    metadata: Any = given.get("metadata") or {}
    spec: Any = given.get("spec") or {}
    made: dict[str, Any] = {
        "metadata": {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    }
    if "completions" in spec:
        affinity = spec["template"]["spec"].get("affinity")
        made["spec"] = {"completions": spec["completions"], "template": {"spec": {"affinity": affinity}}}
    return made


def main() -> None:
    """Write a file for each stack."""
    FOLDER.mkdir(exist_ok=True)
    for stack in sys.argv[1:]:
        engine, _ = open_engine(stack, rehearse=True)
        record = engine.outputs()["trainstack"].value
        smoke = record["smoke"][0] if isinstance(record["smoke"], list) else record["smoke"]
        result = json.loads(homes.of_checkout().local_path(smoke["result_uri"]).read_text())
        document = {
            "resources": [_slim(row) for row in engine.resources()],
            "outputs": record,
            "result": result,
        }
        text = json.dumps(document, separators=(",", ":")).replace(str(ROOT), "/home/user/trainstack")
        text = re.sub(r'"pid":\d+', '"pid":1', text)
        (FOLDER / f"{stack}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
