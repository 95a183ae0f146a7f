"""Packages that a custom job installs."""

from pathlib import Path

import pytest

from tests.rehearsal.jobs import installing
from tests.rehearsal.jobs.gcp.conftest import OVER, Project


@pytest.mark.parametrize(
    "command", [f"python3 {installing.ARCHIVE} job", "pip install -r requirements.txt && python3 train.py"]
)
def test_packages_are_installed_into_the_job(project: Project, tmp_path: Path, command: str) -> None:
    before = installing.version()
    for name, content in installing.files(tmp_path / "job").items():
        project.put("code-bucket", f"{name}", content)
    place = "/gcs/code-bucket"
    found = project.reached(project.start(installing.start(place, command)), OVER, 60.0)
    said = project.lines(found["name"])
    assert found["state"] == "JOB_STATE_SUCCEEDED", said
    assert "rank None has 42 0.1" in said
    assert installing.version() == before
