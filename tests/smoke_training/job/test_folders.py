"""The folders of a job in each service."""

from pathlib import Path

import pytest

from smoke_training.job.services import folders_of

SPEC = {"CLUSTER_SPEC": "{}"}
BASE = {
    "AIP_MODEL_DIR": "gs://runs/one/model/",
    "AIP_CHECKPOINT_DIR": "gs://runs/one/checkpoints/",
    "AIP_TENSORBOARD_LOG_DIR": "gs://runs/one/logs/",
}
SUBMITTED = {"TRAINSTACK_CHECKPOINT_URI": "gs://kept/teams/a/one", "TRAINSTACK_DATA_URI": "gs://data/a/"}


def test_of_sagemaker_they_lie_below_one_folder() -> None:
    found = folders_of({"SAGEMAKER_BASE_DIR": "/moved"})
    assert (found.model, found.failure) == (Path("/moved/model"), Path("/moved/output/failure"))
    assert not found.shared and found.scratch == found.output


def test_trials_of_a_search_share_a_folder_of_checkpoints_and_have_one_of_their_own_in_it() -> None:
    found = folders_of({"TRAINSTACK_TRIAL": "search-001-abcdef12"})
    assert found.checkpoints == Path("/opt/ml/checkpoints/search-001-abcdef12")
    assert folders_of({}).checkpoints == Path("/opt/ml/checkpoints")


def test_of_vertex_they_lie_in_buckets() -> None:
    found = folders_of({**SPEC, **BASE, **SUBMITTED})
    assert found.variables() == {
        "TRAINSTACK_CHECKPOINTS": "/gcs/kept/teams/a/one",
        "TRAINSTACK_MODEL": "/gcs/runs/one/model",
        "TRAINSTACK_OUTPUT": "/gcs/runs/one/output",
        "TRAINSTACK_DATA": "/gcs/data/a",
    }
    assert found.failure == Path("/gcs/runs/one/failure") and found.shared
    assert not found.scratch.is_relative_to("/gcs")


def test_checkpoints_go_where_the_service_says_unless_the_submitter_says_it() -> None:
    found = folders_of({**SPEC, **BASE, "TRAINSTACK_GCS": "/moved"})
    assert found.checkpoints == Path("/moved/runs/one/checkpoints")


def test_without_a_base_directory_they_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = folders_of(SPEC)
    for folder in (found.checkpoints, found.model, found.output, found.data, found.failure):
        assert folder.is_relative_to(tmp_path)
