"""States of released versions, as `pulumi stack export` wrote them, without secrets.

Before a release, `python -m tests.rehearsal.day2.recorded aws gcp` records those of this version.
"""

import json
import lzma
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from infra.places import PROGRAM
from infra.stackspec.document import read
from rehearsal.projects.recorded import of_export
from tests.rehearsal.day2.changes import quickly
from tests.rehearsal.day2.stack import AWS, GCP, Life
from tests.stacks.composition.composed import CONFIG, FILES
from trainstack.stamp.lock import installed

STATES = Path(__file__).with_name("states")
STATE = "state.json.xz"
PROJECT = {"name": "trainstack", "main": PROGRAM, "runtime": "python"}


def folders(cloud: str) -> list[Path]:
    """The folders of recorded stacks of a cloud, by version: each is a client's folder with a state."""
    return sorted(STATES.glob(f"*/{cloud}"))


def state(folder: Path) -> dict[str, Any]:
    """The exported state in a folder."""
    return dict(json.loads(lzma.decompress((folder / STATE).read_bytes())))


def _settings(life: Life) -> Mapping[str, Any]:
    content: dict[str, Any] = json.loads(json.dumps(read(CONFIG / FILES[life.pair], FILES[life.pair])))
    quickly(content["config"]["trainstack:spec"])
    return content


def _record(life: Life, into: Path) -> None:
    with tempfile.TemporaryDirectory() as place, life.deployed(Path(place)) as running:
        export = running.export_stack()
    found = of_export({"deployment": export.deployment})
    assert found
    into.mkdir(parents=True, exist_ok=True)
    document = {"version": export.version, "deployment": found.deployment}
    text = json.dumps(document, separators=(",", ":"), sort_keys=True)
    (into / STATE).write_bytes(lzma.compress(text.encode(), preset=9))
    for name, content in (("Pulumi.yaml", PROJECT), (f"Pulumi.{found.stack}.yaml", _settings(life))):
        with (into / name).open("w") as file:
            YAML().dump(content, file)


if __name__ == "__main__":
    for one in (life for life in (AWS, GCP) if life.pair[1] in sys.argv[1:]):
        _record(one, STATES / installed() / one.pair[1])
