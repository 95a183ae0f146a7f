"""A user for every team, made by the real program in a real MLflow server; Secrets are kept in a table."""

import base64
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
from mlflow.utils.credentials import read_mlflow_creds

from agents.shared.api_server import ApiServer
from agents.waiting import mlflow_logins as program
from agents.waiting.mlflow_logins import Logins, Mlflow, MlflowRequestError, give, give_all
from components.kubernetes.tracking.logins import LoginArgs, MlflowLogins
from smoke_training.names import EXPERIMENT
from smoke_training.record import tracking
from tests.agents.mlflow_server.conftest import Server
from tests.components.graph import Graph, deploy_graph
from tests.smoke_training import results
from tests.smoke_training.samples import lines, parsed

LABELS = {"trainstack.dev/given": "yes"}
VISION = {
    "user": "team-vision", "namespace": "team-vision", "experiment": "team-vision", "permission": "MANAGE",
}  # fmt: skip
RESEARCH = {
    "user": "team-research", "namespace": "team-r", "experiment": "team-research", "permission": "MANAGE",
}  # fmt: skip
GATE = {
    "user": "validation", "namespace": "trainstack-smoke", "experiment": EXPERIMENT, "permission": "EDIT",
}  # fmt: skip


class Secrets(ApiServer):
    """Keeps Secrets by path as the API server does."""

    def __init__(self) -> None:
        self.kept: dict[str, Mapping[str, Any]] = {}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Mapping[str, Any]]:
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.kept:
                return 409, {"reason": "AlreadyExists"}
        if method != "GET":
            self.kept[path] = body
        return (200, self.kept[path]) if path in self.kept else (404, {"reason": "NotFound"})

    def of(self, namespace: str) -> dict[str, str]:
        data = self.kept[f"/api/v1/namespaces/{namespace}/secrets/mlflow-login"]["data"]
        return {key: base64.b64decode(text).decode() for key, text in data.items()}


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


@pytest.fixture
def given(server: Server, secrets: Secrets) -> Secrets:
    """Two teams and the gate have their logins."""
    for login in (VISION, RESEARCH, GATE):
        gave(server, secrets, login)
    return secrets


def gave(server: Server, secrets: Secrets, login: Mapping[str, str]) -> str:
    admin = Mlflow(server.url, server.user, server.password)
    return give(Logins(secrets), admin, server.url, login, LABELS)


def user(secrets: Secrets, namespace: str) -> tuple[str, str]:
    values = secrets.of(namespace)
    return values["MLFLOW_TRACKING_USERNAME"], values["MLFLOW_TRACKING_PASSWORD"]


def started(server: Server, secrets: Secrets, login: Mapping[str, str], experiment: str) -> tuple[int, Any]:
    named = f"/api/2.0/mlflow/experiments/get-by-name?experiment_name={experiment}"
    found = server.ask("GET", named)[1]["experiment"]["experiment_id"]
    wanted = {"experiment_id": found, "start_time": 1}
    return server.ask("POST", "/api/2.0/mlflow/runs/create", wanted, user=user(secrets, login["namespace"]))


def test_a_team_records_runs_with_what_its_secret_holds(server: Server, given: Secrets) -> None:
    names = ("TRACKING_URI", "TRACKING_USERNAME", "TRACKING_PASSWORD", "EXPERIMENT_NAME")
    assert given.of("team-vision").keys() == {f"MLFLOW_{name}" for name in names} | {"credentials"}
    assert given.of("team-vision")["MLFLOW_EXPERIMENT_NAME"] == "team-vision"
    status, made = started(server, given, VISION, "team-vision")
    assert status == 200, made


def _mounted(secrets: Secrets, namespace: str, home: Path) -> None:
    (home / ".mlflow").mkdir()
    (home / ".mlflow" / "credentials").write_text(secrets.of(namespace)["credentials"])


def test_mlflows_own_client_finds_the_login_below_its_home(
    given: Secrets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _mounted(given, "team-vision", tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    assert tuple(read_mlflow_creds()) == user(given, "team-vision")


def test_a_team_sees_nothing_of_another(server: Server, given: Secrets) -> None:
    run = started(server, given, RESEARCH, "team-research")[1]["run"]["info"]["run_id"]
    vision = user(given, "team-vision")
    assert server.ask("GET", f"/api/2.0/mlflow/runs/get?run_id={run}", user=vision)[0] == 403
    assert started(server, given, VISION, "team-research")[0] == 403
    seen = server.ask("POST", "/api/2.0/mlflow/experiments/search", {"max_results": 99}, user=vision)[1]
    assert {row["name"] for row in seen["experiments"]} == {"team-vision"}
    for method, path in (("GET", "get"), ("PATCH", "update-password"), ("DELETE", "delete")):
        other = {"username": "team-research", "password": "mine-from-now-on"}
        named = f"/api/2.0/mlflow/users/{path}?username=team-research"
        assert server.ask(method, named, other, user=vision)[0] == 403


def test_the_validation_records_with_its_own_user_and_can_delete_nothing(
    server: Server, given: Secrets, tmp_path: Path
) -> None:
    _mounted(given, "trainstack-smoke", tmp_path)
    result = results.passed(run_id="7" * 16)
    environment = {"HOME": str(tmp_path), "MLFLOW_TRACKING_URI": server.url}
    outcome = tracking.record(result, parsed(lines()), environment, time.monotonic() + 60)
    assert outcome["synced"] is True, outcome
    validation = user(given, "trainstack-smoke")
    assert started(server, given, GATE, "team-vision")[0] == 403
    gone = {"run_id": outcome["run_id"]}
    assert server.ask("POST", "/api/2.0/mlflow/runs/delete", gone, user=validation)[0] == 403


def test_a_login_that_works_stays_and_one_that_does_not_is_made_anew(server: Server, given: Secrets) -> None:
    before = given.of("team-vision")
    assert gave(server, given, VISION).endswith("as before")
    assert given.of("team-vision") == before
    given.kept.clear()
    gave(server, given, VISION)
    assert given.of("team-vision") != before
    assert started(server, given, VISION, "team-vision")[0] == 200


def test_a_right_that_is_asked_for_anew_replaces_the_old_one(server: Server, given: Secrets) -> None:
    gave(server, given, {**VISION, "permission": "READ"})
    assert started(server, given, VISION, "team-vision")[0] == 403
    gave(server, given, VISION)
    assert started(server, given, VISION, "team-vision")[0] == 200


def test_what_is_refused_is_tried_again_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(1000))
    clock = SimpleNamespace(monotonic=lambda: next(now), sleep=lambda _: None)
    monkeypatch.setattr(program, "time", clock)
    answers: Iterator[str | Exception] = iter([MlflowRequestError("starting"), OSError("away"), "made"])

    def one(_: Mapping[str, str]) -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    said: list[str] = []
    assert give_all(one, [VISION], 300, said.append) == (True, "1 logins work")
    assert said == ["starting", "away", "made"]

    def never(_: Mapping[str, str]) -> str:
        raise MlflowRequestError("status 401")

    done, why = give_all(never, [VISION], 20, said.append)
    assert not done and why.endswith("status 401")


def component(*wanted: LoginArgs) -> Graph:
    def made() -> Mapping[str, pulumi.Input[Any]]:
        args: Any = {
            "url": "http://mlflow", "admin_secret": "arn:admin", "secret_store": "def connect(e): ...\n",
            "grants": {"environment": {"REGION": "here"}, "agents": []}, "image": "i@sha256:0",
            "logins": wanted,
        }  # fmt: skip
        return {"secret": MlflowLogins("dev-logins", args).secret}

    return deploy_graph(made)


def test_the_account_writes_one_secret_in_the_namespaces_of_the_logins() -> None:
    made = component(
        {"user": "a", "namespace": "team-a", "experiment": "a", "permission": "MANAGE"},
        {"user": "b", "namespace": "team-b", "experiment": "b", "permission": "EDIT"},
    )
    roles = made.all("Role")
    assert {row["metadata"]["namespace"] for row in roles.values()} == {"team-a", "team-b"}
    for row in roles.values():
        kept, new = row["rules"]
        assert (kept["resourceNames"], kept["verbs"]) == (["mlflow-login"], ["get", "update"])
        assert new["verbs"] == ["create"]
    assert not made.all("ClusterRole") and not made.all("Secret")
    assert made.outputs["secret"] == "mlflow-login"


def test_what_is_no_secret_lies_beside_the_login() -> None:
    made = component({"user": "a", "namespace": "team-a", "experiment": "runs", "permission": "MANAGE"})
    found = made.find("ConfigMap", "team-a-tracking")
    assert (found["metadata"]["name"], found["metadata"]["namespace"]) == ("mlflow", "team-a")
    assert found["metadata"]["labels"] == LABELS
    assert found["data"] == {"MLFLOW_TRACKING_URI": "http://mlflow", "MLFLOW_EXPERIMENT_NAME": "runs"}


def test_no_password_is_in_what_is_asked_of_the_cluster() -> None:
    made = component({"user": "a", "namespace": "team-a", "experiment": "a", "permission": "MANAGE"})
    job = made.find("Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert "arn:admin" in container["args"]
    assert "password" not in json.dumps(container).lower()
    assert made.find("Namespace")["metadata"]["labels"]["trainstack.dev/tracking"] == "allowed"
