"""The folders of a job in each service."""

from pathlib import Path

import pytest

from agents.managed_job.services import folders_of

SPEC = {"CLUSTER_SPEC": "{}"}


def test_of_sagemaker_they_lie_below_one_folder() -> None:
    found = folders_of({"SAGEMAKER_BASE_DIR": "/moved"})
    assert (found.model, found.failure) == (Path("/moved/model"), Path("/moved/output/failure"))
    assert not found.shared and found.scratch == found.output


def test_trials_of_a_search_share_a_folder_of_checkpoints_and_have_one_of_their_own_in_it() -> None:
    found = folders_of({"TRAINSTACK_TRIAL": "search-001-abcdef12"})
    assert found.checkpoints == Path("/opt/ml/checkpoints/search-001-abcdef12")
    assert folders_of({}).checkpoints == Path("/opt/ml/checkpoints")


def test_of_vertex_they_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = folders_of(SPEC)
    assert not found.shared
    for folder in (found.checkpoints, found.model, found.output, found.data, found.failure):
        assert folder.is_relative_to(tmp_path)
