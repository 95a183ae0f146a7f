"""Programs that pin another version of a provider than the rehearsal has."""

import json
from pathlib import Path

import pytest

from rehearsal.client import Rehearsal
from rehearsal.core.rules import pinning
from rehearsal.core.schema import sdk_version
from tests.rehearsal.projects.test_run import project, run
from tests.trainstack.cli.command import checked

HERE = str(sdk_version("aws"))
OLD = "6.83.0"
_TEXT = """
import pulumi
from pulumi_aws import sqs

class Old(pulumi.CustomResource):
    def __init__(self, name, props, **more):
        super().__init__("aws:sqs/queue:Queue", name, props, pulumi.ResourceOptions(version="6.83.0", **more))

Old("q", {"name": "q", "wasRenamed": True})
sqs.Queue("r", name="r")
"""


def _shop(folder: Path, text: str) -> str:
    main = {"__main__.py": text, "Pulumi.dev.yaml": "config: {aws:region: us-east-1}"}
    project(folder, "name: shop\nruntime: python\n", **main)
    return str(folder)


def test_another_major_version_is_answered_and_its_names_are_not_judged(
    rehearsal: Rehearsal, tmp_path: Path
) -> None:
    folder = _shop(tmp_path / "p", _TEXT)
    done = run(rehearsal, folder, "--report", "json")
    found = checked(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert found["steps"][1]["counts"] == {"same": 3} and found["pinned"] == [pinning.note("aws", OLD, HERE)]
    shown = run(rehearsal, folder, "--", "preview", "--non-interactive")
    assert "wasRenamed is not judged" in shown.stdout and pinning.note("aws", OLD, HERE) in shown.stdout


@pytest.mark.more
def test_a_state_of_another_version_is_refreshed_and_destroyed(rehearsal: Rehearsal, tmp_path: Path) -> None:
    folder = _shop(tmp_path / "p", _TEXT)
    assert run(rehearsal, folder, "--", "up", "--yes", "--skip-preview").returncode == 0
    (tmp_path / "p" / "__main__.py").write_text("from pulumi_aws import sqs\nsqs.Queue('r', name='r')\n")
    for command in (("refresh", "--yes"), ("up", "--yes"), ("destroy", "--yes")):
        done = run(rehearsal, folder, "--", *command, "--skip-preview")
        assert done.returncode == 0, done.stdout + done.stderr
    left = run(rehearsal, folder, "--", "stack", "export")
    assert "resources" not in json.loads(left.stdout)["deployment"]


@pytest.mark.parametrize(
    ("pinned", "installed", "differs"),
    [
        ("6.83.0", "7.51.1", True),
        ("8.0.0", "7.51.1", True),
        ("7.52.0", "7.51.1", True),
        ("7.51.1", "7.51.1", False),
        ("v7.51.1", "7.51.1", False),
        ("7.0.0", "7.51.1", False),
        ("7.52.0-alpha.1", "7.51.1", True),
        ("next", "7.51.1", True),
        ("", "7.51.1", False),
    ],
)
def test_versions_with_other_names(pinned: str, installed: str, differs: bool) -> None:
    assert pinning.renames(pinned, installed) is differs
