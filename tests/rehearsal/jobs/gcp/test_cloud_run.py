"""A service on the emulated Cloud Run: access through the proxy, and lifetime of instances."""

import base64
import importlib.metadata
import json
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from components.gcp.jobs.program import START, VARIABLE, zipped
from components.gcp.jobs.roles import SIGNS
from components.gcp.jobs.tracking import VISITS
from infra.launchers import bundle
from rehearsal.accounts import project_number
from rehearsal.core.model import Record
from rehearsal.dataplane import folders
from rehearsal.gcp import service_agents
from rehearsal.jobs.gcp.cloud_run import front, service
from smoke_training.names import IAP
from tests.rehearsal.jobs.gcp.conftest import ADA, PROJECT, REGION, TRAINER, Project

URI = "https://mlflow-0123456789-uc.a.run.app"
SERVER = f"mlflow@{PROJECT}.iam.gserviceaccount.com"
DATABASE = "10.9.0.3"
AGENT = service_agents.email("iap.googleapis.com", project_number(PROJECT))
ROLE = f"projects/{PROJECT}/roles/signs"
ECHO = "tests.rehearsal.jobs.gcp.echo"
# What the validation does: the client of its record, from the zip that jobs bring.
RECORDS = (
    "import os; from smoke_training.record import mlflow; "
    "print(mlflow.connect(os.environ, 30).existing_experiment('vision'))"
)


class Served:
    """The service, and accounts with access."""

    def __init__(self, project: Project, **variables: str) -> None:
        self.project = project
        template = {"serviceAccount": SERVER, "containers": [container(variables)]}
        self.record = project.add(
            "cloudrunv2/service:Service",
            f"projects/{PROJECT}/locations/{REGION}/services/mlflow",
            {"iapEnabled": True, "template": template},
            uri=URI,
            location=REGION,
        )
        project.add("sql/databaseInstance:DatabaseInstance", "mlflow-db", {}, privateIpAddress=DATABASE)
        for email in (SERVER, AGENT):
            project.add("serviceaccount/account:Account", email, {}, email=email)
        project.grant("roles/storage.objectUser", SERVER)
        project.add("projects/iAMCustomRole:IAMCustomRole", ROLE, {"permissions": list(SIGNS)}, name=ROLE)
        kind = "cloudrunv2/serviceIamMember:ServiceIamMember"
        self.bind(kind, "name", self.record, "roles/run.invoker", AGENT)
        found = project.services.google.locate(URI)
        assert found is not None
        self.url = found

    def bind(self, kind: str, field: str, used: Record, role: str, email: str) -> None:
        """A binding of one resource."""
        member = f"serviceAccount:{email}"
        inputs = {field: used.id, "role": role, "member": member}
        record = self.project.add(kind, f"{used.id}/{role}/{email}", inputs)
        self.project.state.refer(record, {field: used})

    def signs(self, email: str) -> None:
        """Let an account sign tokens of its own."""
        (account,) = self.project.state.issued(email)
        self.bind("serviceaccount/iAMMember:IAMMember", "serviceAccountId", account, ROLE, email)

    def visits(self, email: str) -> None:
        """Let an account pass the proxy."""
        kind = "iap/webCloudRunServiceIamMember:WebCloudRunServiceIamMember"
        self.bind(kind, "cloudRunServiceName", self.record, VISITS, email)

    def welcome(self, email: str) -> None:
        """Let an account sign, and pass."""
        self.signs(email)
        self.visits(email)

    def signed(self, by: str, of: str | None = None, **claims: Any) -> str:
        """A token of an account, asked for by itself."""
        answer = self.ask_to_sign(by, of or by, **claims)
        assert answer.ok, answer.text
        return str(answer.json()["signedJwt"])

    def ask_to_sign(self, by: str, of: str, **claims: Any) -> requests.Response:
        now = int(time.time())
        response = {"iss": of, "sub": of, "aud": f"{self.url}/*", "iat": now, "exp": now + 3600, **claims}
        path = f"v1/projects/-/serviceAccounts/{of}:signJwt"
        return self.project.ask("POST", path, {"payload": json.dumps(response)}, by=by)

    def visit(self, token: str = "", path: str = "/api", **more: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return requests.request(
            "POST", f"{self.url}{path}", headers=headers, timeout=60, allow_redirects=False, **more
        )

    def instances(self) -> list[dict[str, Any]]:
        rows = self.project.services.live_workloads()
        return [one for one in rows if one["kind"] == "CloudRunService"]


def _gone(served: Served, instance: dict[str, Any]) -> None:
    deadline = time.monotonic() + 15
    while any(psutil.pid_exists(pid) for pid in instance["pids"]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert served.instances() == []


def container(variables: dict[str, str]) -> dict[str, Any]:
    environment = {
        "ARTIFACTS_DESTINATION": "gs://runs-bucket/mlflow",
        "DATABASE_URI": f"postgresql+psycopg2://mlflow@{DATABASE}:5432/mlflow?sslmode=verify-ca",
        VARIABLE: zipped(ECHO, (ECHO,)),
        **variables,
    }
    return {
        "commands": ["python3"],
        "args": ["-c", START],
        "envs": [{"name": key, "value": value} for key, value in environment.items()],
        "startupProbe": {"httpGet": {"path": "/health"}, "periodSeconds": 10, "failureThreshold": 24},
    }


@pytest.fixture
def served(project: Project) -> Served:
    return Served(project)


def test_only_signing_accounts_with_access_reach_the_program(served: Served) -> None:
    served.welcome(TRAINER)
    served.signs(ADA)
    hers, now = served.signed(TRAINER), int(time.time())
    other = served.signed(TRAINER, iss=ADA)
    forged = f"{hers.rpartition('.')[0]}.{base64.urlsafe_b64encode(b'x' * 256).decode()}"
    refused = {
        "empty token": served.visit(),
        "Unable to parse JWT": served.visit("ya29.opaque"),
        "JWT signature is invalid": served.visit(forged),
        "Invalid JWT subject": served.visit(served.signed(TRAINER, sub=ADA)),
        "may not open this app": served.visit(served.signed(ADA)),
        "good for more than an hour": served.visit(served.signed(TRAINER, exp=now + 3700)),
    }
    for words, answer in refused.items():
        assert words in answer.text, answer.text
        assert answer.headers["X-Goog-IAP-Generated-Response"] == "true"
    codes = {words: answer.status_code for words, answer in refused.items()}
    assert codes.pop("empty token") == 302 and codes.pop("may not open this app") == 403
    assert set(codes.values()) == {401}
    assert "JWT signature is invalid" in served.visit(other).text  # signed by TRAINER, and says it is ADA
    # Neither the address without a path, nor another address of the service: only its own, with all paths.
    for audience in (served.url, URI, f"{URI}/*"):
        assert "Invalid JWT audience" in served.visit(served.signed(TRAINER, aud=audience)).text
    assert served.instances() == [], "a refused request starts nothing"
    response = served.visit(hers, "/api?q=1", data=b"content").json()
    assert (response["path"], response["body"], response["service"]) == ("/api?q=1", "content", "mlflow")
    assert "authorization" not in response["headers"]
    assert served.visit(served.signed(TRAINER, aud=f"{served.url}/api")).ok


def test_signing_needs_a_right_to_the_account(served: Served) -> None:
    served.signs(TRAINER)
    assert served.ask_to_sign(ADA, ADA).status_code == 403
    assert served.ask_to_sign(TRAINER, ADA).status_code == 403
    refused = served.ask_to_sign(TRAINER, TRAINER, exp=int(time.time()) + 13 * 3600)
    assert refused.status_code == 400 and "12 hours" in refused.text


def test_the_proxy_needs_the_right_to_call_the_service(served: Served) -> None:
    served.welcome(TRAINER)
    for one in served.project.state.find(type="gcp:cloudrunv2/serviceIamMember:ServiceIamMember"):
        served.project.state.remove(one)
    answer = served.visit(served.signed(TRAINER))
    assert answer.status_code == 403 and "X-Goog-IAP-Generated-Response" not in answer.headers


def test_the_program_finds_bucket_and_database_of_this_machine(served: Served) -> None:
    served.welcome(TRAINER)
    response, home = served.visit(served.signed(TRAINER)).json(), served.project.home
    assert response["files"] == f"file://{folders.bucket(home, 'runs-bucket', 'gs')}/mlflow"
    assert response["database"] == f"sqlite:///{folders.database(home, 'mlflow-db')}/mlflow.db"


def test_more_than_a_request_may_hold_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "MOST_BYTES", 8)
    served.welcome(TRAINER)
    assert served.visit(served.signed(TRAINER), data=b"123456789").status_code == 413


def test_an_instance_ends_without_requests_and_after_a_change(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.welcome(TRAINER)
    token = served.signed(TRAINER)
    assert served.visit(token).json()["word"] is None
    (first,) = served.instances()
    template = {**served.record.inputs["template"], "containers": [container({"WORD": "second"})]}
    inputs = {**served.record.inputs, "template": template}
    served.project.state.replace(served.record, inputs=inputs, outputs=served.record.outputs)
    assert served.visit(token).json()["word"] == "second"
    (second,) = served.instances()
    assert not any(psutil.pid_exists(pid) for pid in first["pids"])
    monkeypatch.setattr(service, "_IDLE_S", 0.0)
    _gone(served, second)
    monkeypatch.undo()
    assert served.visit(token).ok, "the next request starts another one"
    (third,) = served.instances()
    served.project.state.remove(served.record)
    _gone(served, third)
    with pytest.raises(requests.ConnectionError):
        served.visit(token)


def test_a_program_that_does_not_start_is_unavailable(project: Project) -> None:
    served = Served(project, WORD="broken")
    served.welcome(TRAINER)
    assert served.visit(served.signed(TRAINER)).status_code == 503
    assert served.instances() == []


def test_a_validation_records_as_its_account_and_says_so_where_that_may_not(
    served: Served, tmp_path: Path
) -> None:
    code = tmp_path / "code.zip"
    code.write_bytes(bundle.shipped().content)
    start = f'PYTHONPATH={code} MLFLOW_TRACKING_URI={URI} MLFLOW_TRACKING_AUTH={IAP} python3 -c "{RECORDS}"'

    def recorded() -> tuple[str, str]:
        ended = served.project.run(start, scheduling={"disableRetries": True})
        return ended["state"], "\n".join(served.project.lines(ended["name"]))

    state, said = recorded()
    assert state == "JOB_STATE_FAILED" and "'iam.serviceAccounts.signJwt' denied" in said, said
    served.signs(TRAINER)
    state, said = recorded()
    assert state == "JOB_STATE_FAILED" and f"{TRAINER} may not open this app" in said, said
    served.visits(TRAINER)
    assert recorded() == ("JOB_STATE_SUCCEEDED", "7")


def test_mlflow_finds_its_login_in_the_zip_and_shows_it_to_the_server_alone(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.welcome(TRAINER)
    google = served.project.services.google
    host = google.metadata_host(TRAINER, PROJECT, REGION)
    monkeypatch.setenv("GCE_METADATA_HOST", host)
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS", f"{served.project.url}/")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", served.url)
    code = tmp_path / "code.zip"
    code.write_bytes(bundle.shipped().content)
    (found,) = [
        point
        for one in importlib.metadata.distributions(path=[str(code)])
        for point in one.entry_points
        if (point.group, point.name) == ("mlflow.request_auth_provider", "iap")
    ]
    provider = found.load()()
    assert provider.get_name() == IAP
    assert requests.get(f"{served.url}/api", auth=provider.get_auth(), timeout=60).json()["path"] == "/api"
    elsewhere = requests.Request("GET", "http://mlflow.example.com/api", auth=provider.get_auth()).prepare()
    assert "Authorization" not in elsewhere.headers
