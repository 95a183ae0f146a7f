"""`trainstack kubeconfig` and `trainstack open`: how people come to the cluster and to its services."""

import base64
import contextlib
import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from infra.engine.golang import SetupError
from infra.errors import Problem, UserError
from trainstack.cli.stack import Rehearse, Stack

if TYPE_CHECKING:  # help comes without them
    from infra.outputs.cluster import StackOutputs
    from rehearsal.client import Rehearsal

# Written by agents/waiting/mlflow_logins.py.
_SECRET, _USER, _WORD = "mlflow-login", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"

_PORT = 5000

Team = Annotated[
    str, typer.Option("--team", "-t", help="A team of the stack; without it, as an administrator.")
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        help="Forward this port of this machine (else that of the service), also past a load balancer.",
        min=1024,
        max=65535,
    ),
]
Service = Annotated[Literal["mlflow", "grafana"], typer.Argument(help="What to open.")]
# Of components/kubernetes/monitoring/places.py, which needs the engine's packages.
_MONITORING, _GRAFANA_LOGIN, _GRAFANA_PORT = "monitoring", "grafana-login", 3000


def kubeconfig(stack: Stack, team: Team = "", rehearse: Rehearse = False) -> None:
    """Print a kubeconfig without a secret: whoever uses it logs in to the cloud. With --team, for members."""
    exported, _ = deployed(stack, rehearse=rehearse)
    typer.echo(kubeconfig_of(exported, team))


def open_service(
    service: Service, stack: Stack, team: Team = "", port: Port = None, rehearse: Rehearse = False
) -> None:
    """Forward a port to the tracking server, or to the dashboards, until Ctrl-C.

    The login is shown here, and kept nowhere. Where a load balancer brings browsers to the tracking server,
    its address is shown instead.
    """
    exported, rehearsal = deployed(stack, rehearse=rehearse)
    if service == "grafana":
        open_grafana(exported, team=team, port=port or _GRAFANA_PORT, rehearsed=rehearsal is not None)
        return
    if rehearsal is not None:
        show_rehearsed(exported, rehearsal, team)
        return
    with tempfile.TemporaryDirectory(prefix="trainstack-") as folder:
        config = Path(folder, "kubeconfig")
        config.write_text(kubeconfig_of(exported, team))
        login = _team_login(config, exported, team) if team else _first_user(exported)
        if exported.mlflow_way_in is not None and port is None:
            _show(exported.mlflow_way_in.url, login, secretly=True)
            return
        port = port or _PORT
        _show(f"http://localhost:{port}", login, secretly=True)
        with contextlib.suppress(KeyboardInterrupt):
            forward = ["port-forward", f"service/{service}", f"{port}:{_PORT}"]
            kubectl(config, [f"--namespace={service}", *forward])


def open_grafana(exported: "StackOutputs", *, team: str, port: int, rehearsed: bool) -> None:
    """Forward a port to Grafana. Raises UserError where there is none, or only administrators may come."""
    if team:
        fix = "Leave out --team, as an administrator of the cluster."
        raise UserError([Problem("--team", team, "Grafana has one login, which shows all teams", fix)])
    if rehearsed:
        fix = "Deploy the stack, or look at the dashboards below components/kubernetes/monitoring/dashboards."
        raise UserError(
            [Problem("grafana", "--rehearse", "a rehearsal does not run what charts install", fix)]
        )
    with tempfile.TemporaryDirectory(prefix="trainstack-") as folder:
        config = Path(folder, "kubeconfig")
        config.write_text(kubeconfig_of(exported, team=""))
        where = f"--namespace={_MONITORING}"
        done = kubectl(config, [where, "get", "secret", _GRAFANA_LOGIN, "--output=json"], capture=True)
        if done.returncode:
            fix = "Log in to the cloud as an administrator; layout.monitoring has to be in_cluster."
            rule = f"its login cannot be read: {done.stderr.strip()}"
            raise UserError([Problem("grafana", _GRAFANA_LOGIN, rule, fix)])
        data = json.loads(done.stdout)["data"]
        login = {key: base64.b64decode(data[key]).decode() for key in ("username", "password")}
        _show(f"http://localhost:{port}", login, secretly=True)
        with contextlib.suppress(KeyboardInterrupt):
            kubectl(config, [where, "port-forward", "service/grafana", f"{port}:{_GRAFANA_PORT}"])


def show_rehearsed(exported: "StackOutputs", rehearsal: "Rehearsal", team: str) -> None:
    """Where a rehearsed server answers, and a login, which exists on this machine only."""
    if team:
        found = rehearsal.kept_secret(namespace_of(exported, team), _SECRET) or {}
        login = {"username": found.get(_USER), "password": found.get(_WORD)}
    else:
        login = dict(rehearsal.secret(exported.mlflow_admin_secret) or {})
    _show(rehearsal.service_url(exported.mlflow_url) or "not running", login, secretly=False)


def deployed(stack: str, *, rehearse: bool) -> "tuple[StackOutputs, Rehearsal | None]":
    """The outputs of a stack with a cluster, and its rehearsal. Raises UserError where there is none."""
    from infra.outputs import cluster as outputs  # noqa: PLC0415
    from infra.outputs import jobs as job_outputs  # noqa: PLC0415
    from trainstack.cli.session import open_session  # noqa: PLC0415

    session = open_session(stack, rehearse=rehearse)
    found = {key: output.value for key, output in session.engine.outputs().items()}
    if outputs.KEY not in found:
        flag, where = (" --rehearse", " in the rehearsal") if rehearse else ("", "")
        fix = f"Run `trainstack up -s {stack}{flag}` first."
        raise UserError([Problem("stack", stack, f"nothing is deployed{where}", fix)])
    if job_outputs.is_of_jobs(found):
        fix = f"`trainstack status -s {stack}` shows its people, machines and tracking."
        raise UserError([Problem("stack", stack, "has no cluster: people train with managed jobs", fix)])
    return outputs.parse(found), session.rehearsal


def kubeconfig_of(exported: "StackOutputs", team: str) -> str:
    """The stack's own; with a team, in its namespace. Raises UserError for a team that does not exist."""
    config = json.loads(exported.kubeconfig)
    for row in config["contexts"] if team else ():
        row["context"]["namespace"] = namespace_of(exported, team)
    return json.dumps(config, indent=2)


def namespace_of(exported: "StackOutputs", team: str) -> str:
    """The namespace of a team. Raises UserError for one that does not exist."""
    known = {row.name: row.namespace for row in exported.teams}
    if team not in known:
        fix = f"Teams are {', '.join(sorted(known))}."
        raise UserError([Problem("--team", team, "is no team of the stack", fix)])
    return known[team]


def _team_login(config: Path, exported: "StackOutputs", team: str) -> dict[str, str]:
    where = f"--namespace={namespace_of(exported, team)}"
    done = kubectl(config, [where, "get", "secret", _SECRET, "--output=json"], capture=True)
    if done.returncode:
        fix = "Log in to the cloud as a member of the team."
        raise UserError([Problem("--team", team, f"its login cannot be read: {done.stderr.strip()}", fix)])
    data = json.loads(done.stdout)["data"]
    user, word = (base64.b64decode(data[key]).decode() for key in (_USER, _WORD))
    return {"username": user, "password": word}


def _first_user(exported: "StackOutputs") -> dict[str, str]:
    read = _google_secret if exported.cloud == "gcp" else _aws_secret
    try:
        return read(exported)
    except Exception as error:  # boto3 makes its exception classes at run time
        fix = "Log in to the cloud as an administrator, or name your team: --team."
        problem = Problem("mlflow", exported.mlflow_admin_secret, f"its secret cannot be read: {error}", fix)
        raise UserError([problem]) from error


def _aws_secret(exported: "StackOutputs") -> dict[str, str]:
    boto3: Any = importlib.import_module("boto3")
    client = boto3.client("secretsmanager", region_name=exported.region)
    return dict(json.loads(client.get_secret_value(SecretId=exported.mlflow_admin_secret)["SecretString"]))


def _google_secret(exported: "StackOutputs") -> dict[str, str]:
    from infra.clouds.gcp.storage import read_secret  # noqa: PLC0415

    return dict(read_secret(exported.mlflow_admin_secret))


def on_terminal() -> bool:
    """Whether what is printed is seen by a person, and not kept in a file or a log."""
    return sys.stdout.isatty()


def _show(url: str, login: Mapping[str, str | None], *, secretly: bool) -> None:
    """Show a login; one that is real on a terminal only."""
    hidden = secretly and not on_terminal()
    word = "shown on a terminal only" if hidden else login.get("password") or "not made yet"
    typer.echo(f"url       {url}")
    typer.echo(f"username  {login.get('username') or 'not made yet'}")
    typer.echo(f"password  {word}")


def kubectl(
    config: Path, arguments: Sequence[str], *, capture: bool = False, given: str | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run kubectl; `given` is its input. Raises SetupError when it is not installed."""
    command = ["kubectl", f"--kubeconfig={config}", *arguments]
    try:
        return subprocess.run(command, check=False, capture_output=capture, text=True, input=given)
    except FileNotFoundError as error:
        raise SetupError("kubectl is not installed: kubernetes.io/docs/tasks/tools") from error
