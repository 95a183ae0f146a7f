"""Reads of a stack on Google Cloud: results in a bucket, the first user of MLflow."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
from google.auth import exceptions
from requests.adapters import BaseAdapter
from typer.testing import CliRunner

from infra.clouds.gcp import login as google_login
from infra.clouds.gcp.storage import CloudStorageError, read_object, read_secret
from infra.gate import Gate
from infra.outputs.cluster import ValidationRun
from tests.trainstack.cli.test_access import EXPORTED
from tests.trainstack.cli.test_results import NODES, RESULT
from trainstack.cli import access
from trainstack.cli.app import app
from trainstack.cli.operations.results import UnreadableError as UnreadableResultError
from trainstack.cli.operations.results import by_nodes, read

URI = "gs://dev-checkpoints/smoke/smoke-1/result.json"
OBJECT = (
    "https://storage.googleapis.com/storage/v1/b/dev-checkpoints/o/smoke%2Fsmoke-1%2Fresult.json?alt=media"
)
SECRET = "projects/dev-1/secrets/mlflow-admin"
VALUES = "https://secretmanager.googleapis.com/v1/projects/dev-1/secrets/mlflow-admin/versions"
LOGIN = {"username": "admin", "password": "s3cret-word", "session_key": "k"}


def payload(fields: Any) -> bytes:
    return json.dumps({"payload": {"data": base64.b64encode(json.dumps(fields).encode()).decode()}}).encode()


def refusal(message: str) -> bytes:
    return json.dumps({"error": {"message": message}}).encode()


@dataclass
class Google(BaseAdapter):
    """Answers by address."""

    answers: dict[str, tuple[int, bytes] | Exception] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:  # type: ignore[override]
        assert request.method == "GET", "it only reads"
        self.asked.append(str(request.url))
        said = self.answers.get(str(request.url), (404, refusal("not found")))
        if isinstance(said, Exception):
            raise said
        answer = requests.Response()
        answer.status_code, answer._content = said
        answer.url, answer.request = str(request.url), request
        return answer

    def close(self) -> None: ...


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Google:
    cloud = Google()

    def session(attempts: int) -> tuple[requests.Session, str]:
        made = requests.Session()
        made.mount("https://", cloud)
        return made, "dev-1"

    monkeypatch.setattr(google_login, "session", session)
    return cloud


def test_an_object_is_read_by_its_whole_name(google: Google) -> None:
    google.answers[OBJECT] = 200, b"content"
    assert read_object(URI) == b"content"


def test_the_result_of_a_validation_is_read_from_its_bucket(google: Google) -> None:
    google.answers[OBJECT] = 200, json.dumps(RESULT).encode()
    run = ValidationRun(pool="a100", job="smoke-1", namespace="trainstack-smoke", result_uri=URI)
    gate = Gate("trainstack-smoke/smoke-1", "passed", None, 2, "a100", "")
    stack = EXPORTED.model_copy(update={"cloud": "gcp", "smoke": (run,)})
    assert [str(one) for one in by_nodes([gate], stack, None)] == [NODES]


def test_a_caller_without_rights_receives_what_is_missing(google: Google) -> None:
    google.answers[OBJECT] = 403, refusal("you@example.com does not have storage.objects.get access")
    with pytest.raises(UnreadableResultError, match=r"status 403: .*storage\.objects\.get"):
        read(URI, "europe-west4", None)


@pytest.mark.parametrize(
    "error",
    [
        google_login.LoggedOutError("no credentials"),
        exceptions.RefreshError("no credentials"),
        requests.ConnectionError("no credentials"),
    ],
)
def test_who_is_not_logged_in_or_has_no_network_is_reported_so(google: Google, error: Exception) -> None:
    google.answers[OBJECT] = error
    with pytest.raises(CloudStorageError, match="no credentials"):
        read_object(URI)


def test_the_first_value_of_a_secret_counts(google: Google) -> None:
    """The latest may be that of a replica which came second."""
    google.answers = {
        f"{VALUES}/1:access": (200, payload(LOGIN)),
        f"{VALUES}/latest:access": (200, payload({})),
    }
    assert read_secret(SECRET) == LOGIN


def test_a_value_that_people_replaced_is_the_latest(google: Google) -> None:
    google.answers = {
        f"{VALUES}/1:access": (400, refusal("it is in DISABLED state")),
        f"{VALUES}/latest:access": (200, payload(LOGIN)),
    }
    assert read_secret(SECRET) == LOGIN


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({}, "status 404: not found"),
        ({f"{VALUES}/1:access": (403, refusal("denied"))}, "status 403: denied"),
        ({f"{VALUES}/1:access": (200, payload(["no", "object"]))}, "no JSON object"),
        ({f"{VALUES}/1:access": (200, b"{}")}, "holds no JSON"),
    ],
)
def test_what_is_no_value_is_said(google: Google, answers: Mapping[str, Any], words: str) -> None:
    google.answers = dict(answers)
    with pytest.raises(CloudStorageError, match=words):
        read_secret(SECRET)


def first_user(monkeypatch: pytest.MonkeyPatch) -> Any:
    exported = EXPORTED.model_copy(
        update={"cloud": "gcp", "region": "europe-west4", "mlflow_admin_secret": SECRET}
    )
    monkeypatch.setattr(access, "deployed", lambda *_, **__: (exported, None))
    monkeypatch.setattr(access, "on_terminal", lambda: True)
    monkeypatch.setattr(access, "kubectl", lambda *_, **__: None)
    return CliRunner().invoke(app, ["open", "mlflow", "-s", "dev"])


def test_an_administrator_is_shown_the_first_user(google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    google.answers[f"{VALUES}/1:access"] = 200, payload(LOGIN)
    done = first_user(monkeypatch)
    assert done.exit_code == 0 and "username  admin" in done.stdout and "s3cret-word" in done.stdout


def test_a_member_is_sent_to_the_teams_login(google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    google.answers[f"{VALUES}/1:access"] = 403, refusal("denied")
    done = first_user(monkeypatch)
    assert done.exit_code != 0 and "--team" in str(done.exception)
