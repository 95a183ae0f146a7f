"""Jobs whose account has roles on managed folders alone, as accounts of a stack have."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from agents.managed_job.gcp import mirror
from agents.managed_job.gcp.folders import BucketFolders, local
from agents.managed_job.gcp.mirror import BucketMirror
from agents.managed_job.gcp.objects import ObjectError, StoredObject
from infra.launchers import managed
from infra.launchers.gcp import vertex
from infra.launchers.runplan import VertexOptions
from smoke_training.reader import DocumentError
from tests.infra.launchers import plans
from tests.rehearsal.jobs.gcp.conftest import ADA, BUCKETS, OVER, PROJECT, REGION, Project

CODE, RUNS = BUCKETS
WRITE, READ = "roles/storage.objectUser", "roles/storage.objectViewer"
OWN = "teams/a"
ALONE = {"cluster": {"workerpool0": ["h:2222"]}, "task": {"type": "workerpool0", "index": 0}}


@pytest.fixture
def limited(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The account ADA writes `teams/a/` and reads `code/`, by roles on managed folders alone."""
    for bucket, folder, role in ((RUNS, f"{OWN}/", WRITE), (CODE, "code/", READ)):
        binding = {"bucket": bucket, "managedFolder": folder, "role": role, "member": f"serviceAccount:{ADA}"}
        made = project.add("storage/managedFolderIamMember:ManagedFolderIamMember", folder, binding)
        project.state.refer(made, {"bucket": project.state.find(id=bucket)[0]})
    host = project.services.google.metadata_host(ADA, PROJECT, REGION)
    monkeypatch.setenv("GCE_METADATA_HOST", host)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", project.url)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "disk"))
    return project


def copied(project: Project, folder: Path) -> BucketMirror:
    return BucketMirror(f"gs://{RUNS}/{OWN}/one/", folder)


def stored(project: Project) -> dict[str, str]:
    there = project.file(RUNS, f"{OWN}/one")
    files = (path for path in there.rglob("*") if path.is_file())
    return {path.relative_to(there).as_posix(): path.read_text() for path in files}


def start(code_uri: str) -> str:
    """First commands of a job that brings its code."""
    found = vertex.custom_job(replace(plans.vertex(), vertex=VertexOptions(code_uri=code_uri)))
    container = found["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    text = next(one["value"] for one in container["env"] if one["name"] == managed.START)
    return str(text.partition("P=$(")[0])


def test_a_mounted_bucket_is_closed_to_an_account_with_a_folder_of_it(limited: Project) -> None:
    limited.put(RUNS, f"{OWN}/mine.txt", b"mine")
    ended = limited.run(f"cat /gcs/{RUNS}/{OWN}/mine.txt", serviceAccount=ADA)
    assert ended["state"] == "JOB_STATE_FAILED"
    path = f"storage/v1/b/{RUNS}/o"
    assert limited.ask("GET", f"{path}?prefix={OWN}/", by=ADA).json()["items"][0]["name"] == f"{OWN}/mine.txt"
    content = f"download/{path}/{OWN}%2Fmine.txt?alt=media"  # as Google's own library reads it
    assert limited.ask("GET", content, by=ADA).content == b"mine"
    assert limited.ask("GET", content).ok and limited.ask("GET", path, by=ADA).status_code == 403
    assert limited.ask("GET", f"{path}?prefix=teams/b/", by=ADA).status_code == 403


def test_the_start_brings_the_code_and_nothing_else(limited: Project) -> None:
    limited.put(CODE, "code/1/hello.py", b"print('it ran')")
    limited.put(CODE, "code/2/other.py", b"")
    code = vertex.VERTEX_CODE
    found = limited.run(
        f"{start(f'gs://{CODE}/code/1')}ls {code}; python3 {code}/hello.py", serviceAccount=ADA
    )
    assert limited.lines(found["name"]) == ["hello.py", "it ran"]


@pytest.mark.parametrize(("uri", "said"), [("code/none", "no objects"), ("secret", "403")])
def test_a_start_without_its_code_ends_the_job_and_says_why(limited: Project, uri: str, said: str) -> None:
    name = limited.start(f"{start(f'gs://{CODE}/{uri}')}echo on", serviceAccount=ADA)
    assert limited.reached(name, OVER)["state"] == "JOB_STATE_FAILED"
    lines = "\n".join(limited.lines(name))
    assert said in lines and "Traceback" not in lines and "on" not in lines.splitlines()


def test_files_are_stored_restored_and_deleted_with_the_folder(limited: Project, tmp_path: Path) -> None:
    first = copied(limited, tmp_path / "first")
    (tmp_path / "first" / "step-1").mkdir(parents=True)
    (tmp_path / "first" / "step-1" / "a b&c.pt").write_text("weights")
    (tmp_path / "first" / "mark").write_text("1")
    first.save(all_of_it=True)
    assert stored(limited) == {"step-1/a b&c.pt": "weights", "mark": "1"}
    second = copied(limited, tmp_path / "second")
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "stale").write_text("of an earlier try")
    assert second.restore() == 2
    assert (tmp_path / "second" / "step-1" / "a b&c.pt").read_text() == "weights"
    (tmp_path / "second" / "mark").write_text("2")
    (tmp_path / "second" / "step-1" / "a b&c.pt").unlink()
    second.save(all_of_it=True)
    assert stored(limited) == {"mark": "2"}


def test_a_file_that_just_changed_waits_while_the_job_runs(limited: Project, tmp_path: Path) -> None:
    found = copied(limited, tmp_path / "folder")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "growing").write_text("half")
    (tmp_path / "folder" / "settled").write_text("whole")
    os.utime(tmp_path / "folder" / "settled", (0, 0))
    found.save(all_of_it=False)
    assert stored(limited) == {"settled": "whole"}


def test_a_commit_mark_is_stored_after_its_checkpoint(
    limited: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = copied(limited, tmp_path / "folder")
    (tmp_path / "folder").mkdir()
    for age, (name, size) in enumerate((("0-mark", 3), ("shard-1", 20), ("shard-2", 20))):
        path = tmp_path / "folder" / name
        path.write_text("x" * size)
        os.utime(path, (1000 - age, 1000 - age))
    monkeypatch.setattr(mirror, "SMALL_BYTES", 10)
    limited.file(RUNS, f"{OWN}/one/shard-1").mkdir(parents=True)  # its upload is refused
    with pytest.raises(ObjectError):
        found.save(all_of_it=True)
    assert "0-mark" not in stored(limited)


def test_what_no_role_permits_is_an_error_of_the_service(limited: Project, tmp_path: Path) -> None:
    others = BucketMirror(f"gs://{RUNS}/teams/b", tmp_path / "b")
    with pytest.raises(ObjectError, match="403"):
        others.restore()
    (tmp_path / "b").mkdir(exist_ok=True)
    (tmp_path / "b" / "x").write_text("x")
    with pytest.raises(ObjectError, match="403"):
        others.save(all_of_it=True)


def test_a_name_that_leads_out_of_the_folder_is_refused(limited: Project, tmp_path: Path) -> None:
    found = copied(limited, tmp_path / "folder")
    found.folder.mkdir()
    with pytest.raises(ObjectError):
        found._bring(StoredObject(f"{OWN}/one/../../escaped", 1, ""))


def test_a_job_starts_with_its_data_and_checkpoints_and_leaves_outputs(limited: Project) -> None:
    limited.put(RUNS, f"{OWN}/data/x.txt", b"data")
    limited.put(RUNS, f"{OWN}/run/step-1.pt", b"one")
    limited.put(RUNS, f"{OWN}/one/failure", b"of an earlier attempt")
    environment = {
        "CLUSTER_SPEC": json.dumps(ALONE),
        "AIP_MODEL_DIR": f"gs://{RUNS}/{OWN}/one/model/",
        "TRAINSTACK_CHECKPOINT_URI": f"gs://{RUNS}/{OWN}/run",
        "TRAINSTACK_DATA_URI": f"gs://{RUNS}/{OWN}/data/",
    }
    folders = local()
    with BucketFolders(environment, folders, print) as copies:
        copies.restore()
        assert (folders.data / "x.txt").read_text() == "data"
        assert (folders.checkpoints / "step-1.pt").read_text() == "one"
        folders.model.mkdir(parents=True)
        (folders.model / "model.pt").write_text("trained")
    assert stored(limited) == {"model/model.pt": "trained"}
    missing = {**environment, "TRAINSTACK_DATA_URI": f"gs://{RUNS}/{OWN}/nothing"}
    with pytest.raises(DocumentError), BucketFolders(missing, folders, print) as copies:
        copies.restore()
