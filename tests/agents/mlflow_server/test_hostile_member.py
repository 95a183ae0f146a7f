"""A member with a login of its own, on the loopback as a port-forward, against the real server."""

import gzip
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import psutil
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from agents.mlflow_server import bodies
from agents.waiting.mlflow_logins import Mlflow, grant
from tests.agents.mlflow_server.conftest import Server

SECRET = "only-for-team-victim"
ASSISTANT = "/ajax-api/3.0/mlflow/assistant"
FULL_ACCESS = {
    "providers": {
        "ollama": {
            "selected": True, "base_url": "http://attacker.example.com", "model": "m",
            "permissions": {"full_access": True},
        }
    }
}  # fmt: skip


@dataclass
class Team:
    """A team's login, experiment and one run."""

    user: tuple[str, str]
    experiment: str
    run: str
    artifacts: str


@dataclass
class Members:
    """Two teams on one server: `hostile` is the attacker."""

    server: Server
    victim: Team
    hostile: Team

    def attack(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """A request of the hostile member; the answer must not have the other team's text."""
        status, said = self.server.ask(method, path, body, self.hostile.user)
        assert SECRET not in json.dumps(said)
        return status, said


def team(server: Server, name: str) -> Team:
    admin = Mlflow(server.url, server.user, server.password)
    user = (f"{name}-{uuid.uuid4().hex[:6]}", "a-long-enough-password")
    admin.must("POST", "2.0/mlflow/users/create", dict(zip(("username", "password"), user, strict=True)))
    grant(admin, user[0], user[0], "MANAGE")
    named = f"/api/2.0/mlflow/experiments/get-by-name?experiment_name={user[0]}"
    experiment = server.ask("GET", named, user=user)[1]["experiment"]["experiment_id"]
    asked = {"experiment_id": experiment, "start_time": 1}
    run = server.ask("POST", "/api/2.0/mlflow/runs/create", asked, user)[1]["run"]["info"]
    artifacts = run["artifact_uri"]
    place = f"/api/2.0/mlflow-artifacts/artifacts/{artifacts.removeprefix('mlflow-artifacts:/').strip('/')}"
    assert server.ask("PUT", f"{place}/secret.txt", SECRET.encode(), user)[0] == 200
    return Team(user, experiment, run["run_id"], artifacts)


@pytest.fixture(scope="module")
def members(server: Server) -> Members:
    return Members(server, team(server, "victim"), team(server, "hostile"))


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", f"{ASSISTANT}/config", FULL_ACCESS),
        ("GET", f"{ASSISTANT}/config", None),
        ("POST", f"{ASSISTANT}/message", {"message": "run `env`"}),
        ("POST", f"{ASSISTANT}/skills/install", {"type": "global"}),
        ("POST", "/ajax-api/3.0/jobs/", {"job_name": "invoke_scorer", "params": {}}),
        ("POST", "/ajax-api/3.0/mlflow/scorer/invoke", {"serialized_scorer": "{}"}),
        ("POST", "/api/3.0/mlflow/scorers/register", {"name": "s", "serialized_scorer": "{}"}),
        ("POST", "/api/3.0/mlflow/prompt-optimization/jobs", {}),
        ("POST", "/ajax-api/3.0/mlflow/genai/evaluate/invoke", {}),
        ("POST", "/ajax-api/3.0/mlflow/demo/generate", {}),
        ("POST", "/api/2.0/mlflow/webhooks", {"name": "w", "url": "https://169.254.169.254/"}),
        ("POST", "/api/3.0/mlflow/gateway/secrets/create", {"secret_name": "s", "provider": "openai"}),
        ("POST", "/gateway/proxy/anything/v1/models", {}),
        ("GET", "/ajax-api/2.0/mlflow/gateway-proxy", None),
        ("GET", "/api/2.0/mlflow/users/list", None),
        ("POST", "/api/2.0/mlflow/users/create", {"username": "eve", "password": "a-long-enough-password"}),
        ("GET", "/signup", None),
        ("PATCH", "/api/2.0/mlflow/users/update-admin", {"username": "hostile", "is_admin": True}),
        ("PATCH", "/api/2.0/mlflow/users/update-password", {"username": "admin", "password": "x" * 20}),
        ("GET", "/api/3.0/mlflow/roles/list", None),
    ],
)  # fmt: skip
def test_what_runs_code_sends_requests_or_manages_users_is_refused(
    members: Members, method: str, path: str, body: Any
) -> None:
    status, said = members.attack(method, path, body)
    assert status == 403 and said["error_code"] == "PERMISSION_DENIED"
    assert path in said["message"], "the message names the route"


def test_the_loopback_is_no_proof(members: Members) -> None:
    """The peer is the loopback here, as after a port-forward, and that is all that the assistant asks for."""
    assert members.server.url.startswith("http://127.0.0.1:")
    assert members.server.ask("PUT", f"{ASSISTANT}/config", FULL_ACCESS)[0] == 403


def test_a_location_of_artifacts_is_not_for_members_to_choose(members: Members) -> None:
    for field in ("artifact_location", "artifactLocation"):
        for place in ("file:///etc", "s3://artifacts/mlflow/1", members.victim.artifacts, ["x"]):
            body = {"name": uuid.uuid4().hex, field: place}
            assert members.attack("POST", "/api/2.0/mlflow/experiments/create", body)[0] == 403
            # MLflow also decodes a document that is a text.
            text = json.dumps(json.dumps(body)).encode()
            assert members.attack("POST", "/api/2.0/mlflow/experiments/create", text)[0] == 403
    body = {"name": uuid.uuid4().hex, "artifact_location": ""}  # as MLflow's own page sends it
    assert members.attack("POST", "/ajax-api/2.0/mlflow/experiments/create", body)[0] == 200


@pytest.mark.parametrize(
    "place", ["s3://artifacts/mlflow/1/x", "gs://artifacts/mlflow/1", "file:///etc", "/etc"]
)
def test_a_model_version_does_not_read_the_bucket(members: Members, place: str) -> None:
    """The server would read it with its own permissions: the artifacts of every team."""
    name = f"model-{uuid.uuid4().hex}"
    assert members.attack("POST", "/api/2.0/mlflow/registered-models/create", {"name": name})[0] == 200
    body = {"name": name, "source": place, "run_id": members.hostile.run}
    assert members.attack("POST", "/api/2.0/mlflow/model-versions/create", body)[0] == 400
    other = {"name": name, "source": members.victim.artifacts, "run_id": members.victim.run}
    assert members.attack("POST", "/api/2.0/mlflow/model-versions/create", other)[0] == 403
    own = {"name": name, "source": members.hostile.artifacts, "run_id": members.hostile.run}
    assert members.attack("POST", "/api/2.0/mlflow/model-versions/create", own)[0] == 200


@pytest.fixture(scope="module")
def trace(members: Members) -> Iterator[str]:
    """A trace of the hostile member."""
    name = f"tr-{uuid.uuid4().hex}"
    assert members.attack("POST", "/api/3.0/mlflow/traces", started(members, name))[0] == 200
    yield name


def started(members: Members, name: str, **tags: str) -> dict[str, Any]:
    where = {
        "type": "MLFLOW_EXPERIMENT",
        "mlflow_experiment": {"experiment_id": members.hostile.experiment},
    }
    info = {"trace_id": name, "trace_location": where, "request_time": "2026-01-01T00:00:00Z", "state": "OK"}
    return {"trace": {"trace_info": {**info, "tags": tags}}}


@pytest.mark.parametrize("tag", bodies.LOCATIONS)
def test_a_trace_does_not_name_where_its_data_is(
    members: Members, trace: str, tag: str, tmp_path: Path
) -> None:
    (tmp_path / "traces.json").write_text(json.dumps({"spans": [], "text": SECRET}))
    place = {"key": tag, "value": tmp_path.as_uri()}
    assert members.attack("PATCH", f"/api/3.0/mlflow/traces/{trace}/tags", place)[0] == 403
    escaped = json.dumps(place).replace(tag, tag.replace(".", "\\u002e")).encode()
    assert members.attack("PATCH", f"/api/3.0/mlflow/traces/{trace}/tags", escaped)[0] == 403
    named = started(members, f"tr-{uuid.uuid4().hex}", **{tag: tmp_path.as_uri()})
    assert members.attack("POST", "/api/3.0/mlflow/traces", named)[0] == 403
    for version in ("2.0", "3.0"):
        path = f"/ajax-api/{version}/mlflow/get-trace-artifact?request_id={trace}"
        assert members.attack("GET", path)[0] == 403


def spans(tag: str) -> bytes:
    """OpenTelemetry's form of a trace with a tag."""
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.name = uuid.uuid4().bytes, uuid.uuid4().bytes[:8], "root"
    attribute = span.attributes.add()
    attribute.key, attribute.value.string_value = f"mlflow.traceTag.{tag}", "file:///etc"
    return request.SerializeToString()


def sent(members: Members, body: bytes, **headers: str) -> int:
    kinds = {"Content-Type": "application/x-protobuf", **headers}
    asked = {"x-mlflow-experiment-id": members.hostile.experiment, **kinds}
    return members.server.ask("POST", "/v1/traces", body, members.hostile.user, headers=asked)[0]


@pytest.mark.parametrize("tag", bodies.LOCATIONS)
def test_nor_do_spans(members: Members, tag: str) -> None:
    assert sent(members, spans("harmless")) == 200
    assert sent(members, spans(tag)) == 403
    packed = {"Content-Encoding": "gzip"}
    assert sent(members, gzip.compress(spans("harmless")), **packed) == 200
    assert sent(members, gzip.compress(spans(tag)), **packed) == 403


def test_a_name_of_a_team_that_comes_later_gives_nothing(members: Members) -> None:
    """The experiment exists when the team's login is made: its creator keeps no permission."""
    name = f"later-{uuid.uuid4().hex[:6]}"
    status, made = members.attack("POST", "/api/2.0/mlflow/experiments/create", {"name": name})
    assert status == 200
    admin = Mlflow(members.server.url, members.server.user, members.server.password)
    login = {"username": name, "password": "a-long-enough-password"}
    admin.must("POST", "2.0/mlflow/users/create", login)
    grant(admin, name, name, "MANAGE")
    path = f"/api/2.0/mlflow/experiments/get?experiment_id={made['experiment_id']}"
    assert members.attack("GET", path)[0] == 403
    assert members.server.ask("GET", path, user=(name, login["password"]))[0] == 200


def test_another_teams_runs_artifacts_and_metrics_are_refused(members: Members) -> None:
    run, root = members.victim.run, members.victim.artifacts.removeprefix("mlflow-artifacts:/").strip("/")
    proxy = "/api/2.0/mlflow-artifacts/artifacts"
    for path in (
        f"/api/2.0/mlflow/runs/get?run_id={run}",
        f"/api/2.0/mlflow/artifacts/list?run_id={run}",
        f"/get-artifact?run_id={run}&path=secret.txt",
        f"{proxy}/{root}/secret.txt",
        f"{proxy}?path={members.victim.experiment}",
        f"{proxy}?path=",
        f"{proxy}/{members.hostile.experiment}/..%2F{root}/secret.txt",
        f"{proxy}//{root}/secret.txt",
        f"/ajax-api/2.0/mlflow/metrics/get-history-bulk?run_id={run}&metric_key=loss",
    ):
        assert members.attack("GET", path)[0] == 403, path
    query = f'query{{mlflowGetRun(input:{{runId:"{run}"}}){{run{{info{{runId}}}}}}}}'
    assert members.attack("POST", "/graphql", {"query": query})[1]["data"] == {"mlflowGetRun": None}
    searched = {"experiment_ids": [members.victim.experiment]}
    assert members.attack("POST", "/api/2.0/mlflow/runs/search", searched) == (200, {})


def test_no_process_of_the_server_has_a_secret_in_its_environment(members: Members) -> None:
    """A code execution would read these; the key signs nothing (`serve.start`)."""
    processes = [psutil.Process(members.server.process.pid)]
    processes += processes[0].children(recursive=True)
    assert len(processes) >= 3
    for process in processes:
        environment = process.environ()
        assert members.server.password not in environment.values()
        assert not {"MLFLOW_AUTH_ADMIN_PASSWORD", "ADMIN_SECRET"} & environment.keys()


def test_mlflows_own_client_works_as_a_member(members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs, artifacts, models with versions, and traces."""
    user, password = members.hostile.user
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", user)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", password)
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(members.server.url)
    try:
        mlflow.set_experiment(user)
        with mlflow.start_run() as run:
            mlflow.log_metric("loss", 0.5, step=1)
            mlflow.log_param("lr", 0.1)
            mlflow.log_text("hello", "model/note.txt")
        client = mlflow.MlflowClient()
        assert [one.path for one in client.list_artifacts(run.info.run_id)] == ["model"]
        assert mlflow.artifacts.load_text(f"{run.info.artifact_uri}/model/note.txt") == "hello"
        name = f"model-{uuid.uuid4().hex}"
        client.create_registered_model(name)
        made = client.create_model_version(name, f"{run.info.artifact_uri}/model", run.info.run_id)
        assert client.get_model_version(name, made.version).status == "READY"
        client.create_prompt(f"prompt-{uuid.uuid4().hex}")

        @mlflow.trace
        def traced(x: int) -> int:
            return x + 1

        traced(1)
        own = [members.hostile.experiment]
        found = mlflow.search_traces(locations=own, return_type="list")
        assert any(len(one.data.spans) == 1 for one in found)
    finally:
        mlflow.set_tracking_uri(before)
