"""`trainstack collect` and `audit` of a project of Google Cloud."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

from infra.clouds.gcp import login as google_login
from infra.errors import UserError
from tests.trainstack.cli.command import run
from tests.trainstack.collect.project import ID, NUMBER, Answer, Project, denied, disabled, refused
from trainstack.cli import main

FIRST = "storage.googleapis.com/Bucket"
ABOUT = f"cloudresourcemanager/v1/projects/{ID}"


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project()
    bucket = {"name": "train-data", "location": "EU", "labels": {"owner": "ml"}}
    made.add(FIRST, "//storage.googleapis.com/train-data", bucket)

    def session(attempts: int) -> tuple[requests.Session, str]:
        return made.session(), ID

    monkeypatch.setattr(google_login, "session", session)
    return made


def test_a_snapshot_is_judged_as_the_project_was(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    code, said = run("collect", "--live", "gcp", "--project", ID, "--out", str(file))
    assert code == 0
    assert "1 resources" in said and ID in said
    code, later = run("audit", "--snapshot", str(file), "--format", "json")
    now, live = run("audit", "--live", "gcp", "--format", "json")  # the project of the environment
    assert code == now == 3
    outcomes = json.loads(later)["outcomes"]
    assert outcomes == json.loads(live)["outcomes"]
    failed = {(one["rule"], one["kind"]) for one in outcomes if one["result"] == "fail" and "kind" in one}
    assert ("MLS-STO-01", "gcp:storage/bucket:Bucket") in failed


def test_refused_requests_are_reported_and_undetermined(project: Project, tmp_path: Path) -> None:
    project.said["sqladmin.googleapis.com/Instance"] = denied
    file = tmp_path / "snapshot.json"
    _, said = run("collect", "--live", "gcp", "--out", str(file))
    assert {"cloudasset.assets.listResource", "(PERMISSION_DENIED)"} <= {*said.split()}
    _, found = run("audit", "--snapshot", str(file), "--format", "json")
    of_databases = [one for one in json.loads(found)["outcomes"] if one["rule"] == "MLS-TRK-02"]
    assert [one["result"] for one in of_databases] == ["undetermined"]
    assert "cloudasset.assets.listResource" in of_databases[0]["message"]


def unknown(_: Mapping[str, Any]) -> Any:
    return refused(404, "NOT_FOUND", "Project not found")


@pytest.mark.parametrize(
    ("key", "answer", "said"),
    [
        (ABOUT, denied, r"--project: .*resourcemanager.projects.get .*PERMISSION_DENIED"),
        (ABOUT, unknown, r"--project: .*NOT_FOUND"),
        (FIRST, lambda _: disabled(NUMBER), r"SERVICE_DISABLED.*cloudasset.google"),
        (FIRST, lambda _: refused(429, "RESOURCE_EXHAUSTED"), r"RESOURCE_EXHAUSTED"),
        (FIRST, lambda _: (200, b'{"assets": ['), r"UnreadableAnswer"),
        (FIRST, lambda _: refused(401, "UNAUTHENTICATED", "expired"), r"credentials: .*expired"),
    ],
)
def test_a_project_that_cannot_be_asked_is_an_error(
    project: Project, tmp_path: Path, key: str, answer: Answer, said: str
) -> None:
    project.said[key] = answer
    file = tmp_path / "snapshot.json"
    for words in (("collect", "--out", str(file)), ("audit",)):
        with pytest.raises(UserError, match=said):
            run(words[0], "--live", "gcp", *words[1:])
    assert not file.exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("gcp", "--project", "../other"), "invalid-project"),
        (("gcp", "--region", "us-central1"), "option-of-another-cloud"),
        (("aws", "--project", ID), "option-of-another-cloud"),
    ],
)
def test_what_does_not_go_together_is_refused(project: Project, words: tuple[str, ...], code: str) -> None:
    with pytest.raises(UserError) as caught:
        run("audit", "--live", *words)
    assert caught.value.codes == ((code, words[1]),)
    assert not project.asked


def test_without_credentials_there_is_a_way_out_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "none.json"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    for content in (None, "{", json.dumps({"type": "service_account", "client_email": "a"})):
        if content is not None:
            file.write_text(content)
        words = ["trainstack", "collect", "--live", "gcp", "--project", ID, "--out", str(tmp_path / "out")]
        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        error = capsys.readouterr().err
        assert "[logged-out]" in error
        assert "gcloud auth application-default login" in error
        assert "Traceback" not in error
