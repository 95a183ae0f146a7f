"""The identity of the deployer, and its project."""

import json
from typing import Any

import pytest
import requests
from google.auth.exceptions import RefreshError
from google.auth.transport.requests import AuthorizedSession
from google.oauth2 import credentials as user
from google.oauth2 import service_account

from infra.clouds.gcp import login as google_login
from tests.trainstack.preflight.gcp.asking import (
    ABSENT,
    DENIED,
    ID,
    ME,
    NUMBER,
    Google,
    asked,
    project,
    refused,
)
from trainstack.preflight.answers import State
from trainstack.preflight.gcp import CHECKS, ask, identity

GET = "cloudresourcemanager.projects.get"


def test_project_and_caller_are_shown() -> None:
    (answer,) = asked(identity.caller, project(Google()))
    assert answer.state is State.READY
    assert all(fact in answer.text for fact in (ME, ID, NUMBER))


def test_a_project_that_may_not_be_seen_ends_the_checks() -> None:
    answers = ask(project(Google({GET: DENIED})))
    assert [(one.check, one.state) for one in answers] == [("identity", State.SHORT)]
    assert "user:anna@example.com" in answers[0].text


def test_a_project_that_is_being_deleted() -> None:
    about = {"name": f"projects/{NUMBER}", "projectId": ID, "state": "DELETE_REQUESTED"}
    (answer,) = asked(identity.caller, project(Google({GET: about})))
    assert answer.state is State.SHORT and f"gcloud projects undelete {ID}" in answer.fix


def test_requests_that_may_not_count_against_the_project() -> None:
    info = {"reason": "USER_PROJECT_DENIED", "metadata": {"consumer": f"projects/{ID}"}}
    said = refused(403, "PERMISSION_DENIED", "Caller does not have required permission", **info)
    (answer,) = ask(project(Google({GET: said})))
    assert answer.state is State.UNKNOWN and "serviceUsageConsumer" in answer.fix


def test_credentials_that_google_does_not_accept_are_never_a_pass() -> None:
    (answer,) = ask(project(Google({GET: refused(401, "UNAUTHENTICATED", "Invalid credentials")})))
    assert (answer.check, answer.state) == ("identity", State.UNKNOWN)
    assert "Log in" in answer.fix


@pytest.mark.parametrize("broken", [(200, ["no object"]), refused(503, "UNAVAILABLE"), ABSENT])
def test_an_api_that_does_not_answer_is_unknown(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    google = Google()
    monkeypatch.setattr(google, "answer", lambda *_: broken)
    (answer,) = ask(project(google))
    assert answer.state is State.UNKNOWN


@pytest.mark.parametrize("name", sorted({*CHECKS} - {"administrators", "gke-auth-plugin", "purchases"}))
def test_no_check_passes_where_nothing_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    google = Google()
    of = project(
        google,
        layout__pools__0__purchase={"kind": "reserved", "id": f"projects/{ID}/reservations/r"},
        on__endpoint="ip",
    )
    assert of.number == NUMBER  # the identity was read before
    monkeypatch.setattr(google, "answer", lambda *_: refused(503, "UNAVAILABLE", "later"))
    made = asked(CHECKS[name], of)
    assert made and {one.state for one in made} == {State.UNKNOWN}


@pytest.mark.parametrize(
    ("me", "admins", "state"),
    [
        (ME, [ME], State.READY),
        (ME, ["user:ben@example.com"], State.SHORT),
        (ME, ["group:ml@example.com"], State.NOTE),
        (None, [ME], State.UNKNOWN),
    ],
)
def test_who_deploys_is_among_the_administrators(me: str | None, admins: list[str], state: State) -> None:
    (answer,) = asked(identity.administers, project(Google(), None, me, on__admins=admins))
    assert answer.state is state


def test_requests_count_against_the_project_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    key: Any = type("Signer", (), {"key_id": "1", "sign": lambda *_: b""})()
    made = service_account.Credentials(key, "ci@x.iam.gserviceaccount.com", "https://x.invalid")
    asked_for: list[dict[str, Any]] = []

    def default(**given: Any) -> Any:
        asked_for.append(given)
        return made, "another"

    monkeypatch.setattr("google.auth.default", default)
    session, environment = google_login.session(2, ID)
    assert isinstance(session, AuthorizedSession) and environment == "another"
    google_login.session(2)
    assert [given["quota_project_id"] for given in asked_for] == [ID, None]


def test_a_service_account_has_its_name_without_a_request() -> None:
    key: Any = type("Signer", (), {"key_id": "1", "sign": lambda *_: b""})()
    made = service_account.Credentials(key, "ci@example-ml.iam.gserviceaccount.com", "https://x.invalid")
    assert google_login.who(made) == "serviceAccount:ci@example-ml.iam.gserviceaccount.com"
    assert google_login.who(object()) is None


def _user() -> user.Credentials:
    made: user.Credentials = user.Credentials(
        "narrow", refresh_token="r", token_uri="https://x.invalid", client_id="c", client_secret="s"
    )
    return made


@pytest.mark.parametrize(("status", "found"), [(200, ME), (403, None)])
def test_a_person_is_asked_for_with_all_scopes(
    status: int, found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get(session: AuthorizedSession, address: str, **_: Any) -> requests.Response:
        assert session.credentials.token is None and session.credentials.scopes is None
        assert address == "https://www.googleapis.com/oauth2/v2/userinfo"
        made = requests.Response()
        made.status_code, made._content = status, json.dumps({"email": "anna@example.com"}).encode()
        return made

    monkeypatch.setattr(AuthorizedSession, "get", get)
    assert google_login.who(_user()) == found


def test_a_person_whose_login_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(*_: Any, **__: Any) -> None:
        raise RefreshError("Reauthentication is needed.")

    monkeypatch.setattr(AuthorizedSession, "get", get)
    with pytest.raises(google_login.LoggedOutError, match="Reauthentication"):
        google_login.who(_user())
