"""Jobs of Cluster Director: scripts by gcloud, code in the script, results in its output."""

import base64
import json
from pathlib import Path

import pytest

from infra.errors import UserError
from infra.jobs.gcp import login_node
from infra.jobs.gcp.director import DirectorService
from infra.jobs.service import JobState, LostError

ROW = "1|COMPLETED|60|2|2026-11-30T10:00:00|h100|None"
LISTED = json.dumps([{"name": "research-login-001", "zone": "https://x/zones/us-central1-a"}])


@pytest.fixture
def gcloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that keeps its words and input, and answers from files."""
    program = tmp_path / "gcloud"
    program.write_text(
        f"#!/bin/sh\ncd {tmp_path}\n"
        'case "$2" in instances) cat listed ;; '
        '*) echo "$*" >> words; cat > input; cat output; exit $(cat code) ;; esac\n'
    )
    program.chmod(0o700)
    for name, text in {"listed": LISTED, "output": "", "code": "0"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv(login_node.PROGRAM, str(program))
    return tmp_path


def test_a_result_in_the_output_is_kept_in_the_bucket(gcloud: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, bytes] = {}
    monkeypatch.setattr(DirectorService, "keep", lambda _, uri, content: kept.update({uri: content}))
    result = base64.b64encode(b"{}").decode()
    (gcloud / "output").write_text(f"result gs://dev-checkpoints/smoke {result}\n{ROW}\n")
    job = DirectorService("lab", "dev").job("smoke-1")
    assert job is not None and job.state is JobState.COMPLETED
    assert kept == {"gs://dev-checkpoints/smoke/smoke-1/result.json": b"{}"}
    words = (gcloud / "words").read_text()
    assert "--zone us-central1-a --tunnel-through-iap" in words and "--project lab" in words


@pytest.mark.parametrize("place", ["https://example.com", "gs://payroll/smoke"])
def test_a_result_of_another_store_is_refused(gcloud: Path, place: str) -> None:
    (gcloud / "output").write_text(f"result {place} e30=\n{ROW}\n")
    with pytest.raises(LostError, match=place):
        DirectorService("lab", "dev").job("smoke-1")


@pytest.mark.parametrize(("code", "error"), [("1", UserError), ("255", LostError)])
def test_a_script_that_fails_is_no_lost_connection(gcloud: Path, code: str, error: type[Exception]) -> None:
    (gcloud / "code").write_text(code)
    with pytest.raises(error):
        DirectorService("lab", "dev").stop("smoke-1")


def test_a_login_node_that_does_not_exist_is_awaited(gcloud: Path) -> None:
    (gcloud / "listed").write_text("[]")
    with pytest.raises(LostError):
        DirectorService("lab", "dev").stop("smoke-1")


def test_two_machines_with_the_labels_are_refused(gcloud: Path) -> None:
    """A user who may label a machine of the project would otherwise get the script."""
    (gcloud / "listed").write_text(json.dumps([*json.loads(LISTED), {"name": "mine", "zone": "https://x/z"}]))
    with pytest.raises(UserError) as caught:
        DirectorService("lab", "dev").stop("smoke-1")
    assert [one.code for one in caught.value.problems] == ["login-node-twice"]


def test_without_gcloud_the_error_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(login_node.PROGRAM, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as caught:
        DirectorService("lab", "dev").stop("smoke-1")
    assert [one.code for one in caught.value.problems] == ["gcloud-missing"]
