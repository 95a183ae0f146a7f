"""Access of members and administrators to the cluster and its services, and hidden passwords."""

import base64
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from components.kubernetes.monitoring import names as places
from infra.errors import UserError
from infra.outputs.cluster import ServiceAddress, StackOutputs, TeamOutputs
from infra.outputs.manager import ManagerOutputs
from rehearsal.cluster_kind import ClusterKind, choose
from rehearsal.realcluster.real_provider import FOLDER
from trainstack.cli import access
from trainstack.cli.app import app

RUN = CliRunner()
CONFIG = {"contexts": [{"name": "dev", "context": {"cluster": "dev", "user": "dev"}}]}
EXPORTED = StackOutputs(
    stack="dev", cloud="aws", region="us-east-1", profile="medium", owner="a@example.com", cost_center="c",
    cluster_name="dev", kubeconfig=json.dumps(CONFIG), mlflow_url="http://m", mlflow_admin_secret="arn:a",
    checkpoint_uri="s3://c", dataset_uri="s3://d", artifact_uri="s3://a", pools=("a100",),
    teams=(TeamOutputs(name="Vision Lab", namespace="team-vision-lab", queue="default"),),
    budget="dev-budget-monthly", smoke=(),
)  # fmt: skip
MANAGER = ManagerOutputs(
    stack="dev", cloud="aws", region="us-east-1", profile="large", owner="a@example.com", cost_center="c",
    cluster_name="dev", kubeconfig=json.dumps(CONFIG), clusters={"east": "dev-east"}, connected=("east",),
    pools=("east-a100",), teams=EXPORTED.teams, budget="dev-budget-monthly",
)  # fmt: skip
SECRET = {"data": {key: base64.b64encode(text.encode()).decode() for key, text in (
    ("MLFLOW_TRACKING_USERNAME", "team-vision-lab"), ("MLFLOW_TRACKING_PASSWORD", "s3cret-word"),
)}}  # fmt: skip
KUBECTL = """#!/bin/sh
echo "$@" >> {calls}
case "$*" in
*"get secret"*) {answer} ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubectl that notes its arguments, beside a stack that is deployed."""
    put(tmp_path, f"cat {tmp_path / 'secret.json'}")
    (tmp_path / "secret.json").write_text(json.dumps(SECRET))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(access, "with_cluster", lambda *_, **__: (EXPORTED, None))
    return tmp_path / "calls"


def put(folder: Path, answer: str) -> None:
    script = folder / "kubectl"
    script.write_text(KUBECTL.format(calls=folder / "calls", answer=answer))
    script.chmod(0o755)


def opened(*arguments: str) -> Any:
    return RUN.invoke(app, ["open", "mlflow", "-s", "dev", *arguments])


def test_a_member_gets_a_kubeconfig_of_the_teams_namespace(calls: Path) -> None:
    done = RUN.invoke(app, ["kubeconfig", "-s", "dev", "--team", "Vision Lab"])
    assert done.exit_code == 0
    (context,) = json.loads(done.stdout)["contexts"]
    assert context["context"] == {"cluster": "dev", "user": "dev", "namespace": "team-vision-lab"}
    assert json.loads(RUN.invoke(app, ["kubeconfig", "-s", "dev"]).stdout) == CONFIG


def test_a_rehearsed_control_plane_is_reached_as_its_administrator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(tmp_path, ClusterKind.REAL, None, {})
    folder = tmp_path / FOLDER / "dev"
    folder.mkdir(parents=True)
    (folder / "access.json").write_text(json.dumps({"server": "https://127.0.0.1:1"}))
    (folder / "admin.kubeconfig").write_text(json.dumps({**CONFIG, "users": ["administrator"]}))
    exported = EXPORTED.model_copy(update={"kubeconfig": json.dumps({"server": "https://127.0.0.1:1"})})
    monkeypatch.setattr(access, "with_cluster", lambda *_, **__: (exported, SimpleNamespace(home=tmp_path)))
    done = RUN.invoke(app, ["kubeconfig", "-s", "dev", "--rehearse", "--team", "Vision Lab"])
    found = json.loads(done.stdout)
    assert found["users"] == ["administrator"]
    assert found["contexts"][0]["context"]["namespace"] == "team-vision-lab"


def test_a_team_that_does_not_exist_is_named_beside_those_that_do() -> None:
    with pytest.raises(UserError) as caught:
        access.kubeconfig_of(EXPORTED, "Vision")
    assert caught.value.codes == (("unknown-team", "--team"),)
    assert "Vision Lab" in caught.value.problems[0].fix


def test_a_port_is_forwarded_and_the_login_is_shown_on_a_terminal(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "on_terminal", lambda: True)
    done = opened("--team", "Vision Lab", "--port", "5050")
    assert done.exit_code == 0, done.output
    assert {"http://localhost:5050", "team-vision-lab", "s3cret-word"} <= {*done.stdout.split()}
    asked, forwarded = calls.read_text().splitlines()
    assert asked.endswith("--namespace=team-vision-lab get secret mlflow-login --output=json")
    assert forwarded.endswith("--namespace=mlflow port-forward service/mlflow 5050:5000")
    config = Path(forwarded.split()[0].removeprefix("--kubeconfig="))
    assert not config.exists(), "it is deleted after the forward"


def test_behind_a_load_balancer_its_address_is_shown_and_a_port_forwarded_on_request(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way_in = ServiceAddress(url="https://mlflow.example.com", target="internal-mlflow-1.elb.amazonaws.com")
    behind = EXPORTED.model_copy(update={"mlflow_way_in": way_in})
    monkeypatch.setattr(access, "with_cluster", lambda *_, **__: (behind, None))
    monkeypatch.setattr(access, "on_terminal", lambda: True)
    done = opened("--team", "Vision Lab")
    assert done.exit_code == 0, done.output
    assert {"https://mlflow.example.com", "s3cret-word"} <= {*done.stdout.split()}
    assert len(calls.read_text().splitlines()) == 1, "only the login is requested"
    done = opened("--team", "Vision Lab", "--port", "5050")
    assert "http://localhost:5050" in done.stdout
    assert calls.read_text().splitlines()[-1].endswith("port-forward service/mlflow 5050:5000")


def test_without_a_terminal_the_password_is_hidden(calls: Path) -> None:
    done = opened("--team", "Vision Lab")
    assert "s3cret-word" not in done.output
    assert "on a terminal" in done.stdout


def test_a_login_without_access_is_refused_with_the_reason(calls: Path) -> None:
    put(calls.parent, "echo 'secrets is forbidden' >&2; exit 1")
    done = opened("--team", "Vision Lab")
    assert isinstance(done.exception, UserError)
    assert done.exception.codes == (("login-unreadable", "--team"),)
    assert "secrets is forbidden" in done.exception.problems[0].rule


@pytest.mark.parametrize("exported", [EXPORTED, MANAGER], ids=["a cluster", "a manager of clusters"])
def test_grafana_is_opened_with_the_login_of_its_one_user(
    exported: StackOutputs | ManagerOutputs, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "with_cluster", lambda *_, **__: (exported, None))
    login = {key: base64.b64encode(b"admin").decode() for key in ("username", "password")}
    (calls.parent / "secret.json").write_text(json.dumps({"data": login}))
    monkeypatch.setattr(access, "on_terminal", lambda: True)
    done = RUN.invoke(app, ["open", "grafana", "-s", "dev"])
    assert done.exit_code == 0, done.output
    assert {"http://localhost:3000", "admin"} <= {*done.stdout.split()}
    asked, forwarded = calls.read_text().splitlines()
    assert asked.endswith("--namespace=monitoring get secret grafana-login --output=json")
    assert forwarded.endswith("--namespace=monitoring port-forward service/grafana 3000:3000")


def test_grafana_is_for_administrators_and_runs_in_no_rehearsal(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = RUN.invoke(app, ["open", "grafana", "-s", "dev", "--team", "Vision Lab"])
    assert isinstance(done.exception, UserError)
    assert done.exception.codes == (("team-not-supported", "--team"),)
    monkeypatch.setattr(access, "with_cluster", lambda *_, **__: (EXPORTED, object()))
    done = RUN.invoke(app, ["open", "grafana", "-s", "dev", "--rehearse"])
    assert isinstance(done.exception, UserError)
    assert done.exception.codes == (("grafana-not-rehearsed", "grafana"),)
    assert not calls.exists()


def test_the_command_uses_the_names_of_the_component() -> None:
    found = (places.NAMESPACE, places.LOGIN, places.GRAFANA_PORT, places.GRAFANA)
    assert found == (access._MONITORING, access._GRAFANA_LOGIN, access._GRAFANA_PORT, "grafana")
