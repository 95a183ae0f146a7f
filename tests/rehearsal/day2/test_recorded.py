"""Updates from released versions: the program of today runs against the states that they recorded."""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.exit_codes import ExitCode
from rehearsal.projects import recorded
from tests.rehearsal.day2.recorded import folders, state
from tests.trainstack.cli.command import run_json
from trainstack.cli.clients import update
from trainstack.replay import runs
from trainstack.replay.report import Replay
from trainstack.stamp import lock

pytestmark = pytest.mark.timeout(600)
ACCEPTED: dict[str, set[str]] = {}
"""Ends of data and of nodes that an update accepts, by version and cloud, such as `0.1.0/aws`."""
FILES = "aws:efs/fileSystem:FileSystem"


def client(folder: Path, into: Path) -> Path:
    """The recorded folder as that of a client."""
    into.mkdir()
    for file in folder.glob("Pulumi*.yaml"):
        shutil.copyfile(file, into / file.name)
    return into


def replay(folder: Path, into: Path) -> Replay:
    found = recorded.of_export(state(folder))
    assert found
    return runs.replayed(found, client(folder, into), {})


def ends(found: Replay) -> set[str]:
    """Losses of people: data and nodes."""
    return {text for kind, text in found.effects if kind in ("nodes end", "data is deleted", "data shrinks")}


RELEASES = [
    pytest.param(folder, least, marks=marks, id=f"{folder.parent.name}-{folder.name}")
    for cloud, least, marks in (("aws", 400, ()), ("gcp", 300, pytest.mark.more))
    for folder in folders(cloud)
]


@pytest.mark.parametrize(("folder", "least"), RELEASES)
def test_an_update_from_a_released_version_ends_no_data_and_no_nodes(
    folder: Path, least: int, tmp_path: Path
) -> None:
    found = replay(folder, tmp_path / "client")
    assert not found.errors
    assert found.resources > least
    assert ends(found) == ACCEPTED.get(f"{folder.parent.name}/{folder.name}", set())


def test_this_version_has_recorded_states() -> None:
    assert {one.parent.name for one in folders("aws")} == {one.parent.name for one in folders("gcp")}
    assert lock.installed() in {one.parent.name for one in folders("aws")}


def test_a_replaced_file_system_stops_the_update_with_the_name_of_its_approval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded_folder = folders("aws")[-1]
    folder = client(recorded_folder, tmp_path / "client")
    exported = _edited(state(recorded_folder), FILES, lambda inputs: inputs.update(encrypted=False))
    (tmp_path / "state.json").write_text(json.dumps(exported))
    texts = {path.name: path.read_text() for path in folder.glob("Pulumi*.yaml")}
    template = {**texts, "README.md": "# new\n"}
    monkeypatch.setattr(update, "_rendered", lambda _: template)
    for name, text in lock.files(lock.Stamp("0.0.9", {}, texts)).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    words = ("update", str(folder), "--yes", "--prove", "--state", str(tmp_path / "state.json"))
    code, document = run_json(*words)
    assert (code, document["written"]) == (ExitCode.FAILED, False)
    (shown,) = document["replays"]
    assert shown["errors"] == []
    replaced = {one["name"] for one in shown["caused"] if one["type"] == FILES}
    assert replaced and all(one["operation"] == "replace" for one in shown["caused"] if one["type"] == FILES)
    names = {f"{shown['stack']}:replace:{name}" for name in replaced}
    assert {one["name"] for one in shown["approvals"]} == names
    assert {one["kind"] for one in shown["effects"]} >= {"data is deleted"}
    assert not (folder / "README.md").exists()


def _edited(exported: dict[str, Any], kind: str, edit: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The state with other recorded inputs of the resources of a type."""
    changed = copy.deepcopy(exported)
    for row in changed["deployment"]["resources"]:
        if row["type"] == kind:
            edit(row["inputs"])
            edit(row["outputs"])
    return changed
