"""`trainstack kubeconfig` and `trainstack open`: access to the cluster and its services."""

import base64
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from infra.engine.golang import SetupError
from infra.errors import Problem, UserError
from trainstack.cli.clouds.choice import services_of
from trainstack.cli.output import print_fields
from trainstack.cli.stack import Rehearse, Stack

if TYPE_CHECKING:  # help needs none of them
    from infra.outputs.cluster import StackOutputs
    from infra.outputs.manager import ManagerOutputs
    from rehearsal.client import Rehearsal

# Written by agents/waiting/mlflow_logins.py.
_SECRET, _USER, _PASSWORD = "mlflow-login", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"

_PORT = 5000

Team = Annotated[str, typer.Option("--team", "-t", help="A team of the stack; the administrator by default.")]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        help="Local port to forward (that of the service by default); bypasses a load balancer.",
        min=1024,
        max=65535,
    ),
]
Service = Annotated[Literal["mlflow", "grafana"], typer.Argument(help="Service to open.")]
# As in components/kubernetes/monitoring/names.py, which imports the engine's packages.
_MONITORING, _GRAFANA_LOGIN, _GRAFANA_PORT = "monitoring", "grafana-login", 3000


def kubeconfig(stack: Stack = "", team: Team = "", rehearse: Rehearse = False) -> None:
    """Print a kubeconfig without secrets: its user logs in to the cloud. With --team, for members.

    Of a rehearsed control plane it is the administrator's, whose key is of this machine alone.
    """
    exported, rehearsal = with_cluster(stack, rehearse=rehearse)
    if rehearsal is not None:
        from rehearsal.cluster_kind import real_cluster  # noqa: PLC0415 - help needs none of them
        from rehearsal.realcluster.real_provider import admin_kubeconfig  # noqa: PLC0415

        if real_cluster(rehearsal.home):
            config = admin_kubeconfig(rehearsal.home, exported.kubeconfig).read_text(encoding="utf-8")
            exported = exported.model_copy(update={"kubeconfig": config})
    typer.echo(kubeconfig_of(exported, team))


def open_service(
    service: Service, stack: Stack = "", team: Team = "", port: Port = None, rehearse: Rehearse = False
) -> None:
    """Forward a port to MLflow or Grafana until Ctrl-C, and show the login.

    Where MLflow has a load balancer, its address is shown instead.
    """
    if service == "grafana":
        # The manager of several clusters has one, too.
        of_any, rehearsed = with_cluster(stack, rehearse=rehearse)
        open_grafana(of_any, team=team, port=port or _GRAFANA_PORT, rehearsed=rehearsed is not None)
        return
    exported, rehearsal = deployed(stack, rehearse=rehearse)
    if rehearsal is not None:
        show_rehearsed(exported, rehearsal, team)
        return
    with kubeconfig_file(exported, team) as config:
        login = _team_login(config, exported, team) if team else _first_user(exported)
        if exported.mlflow_way_in is not None and port is None:
            _show(exported.mlflow_way_in.url, login, secret=True)
            return
        port = port or _PORT
        _show(f"http://localhost:{port}", login, secret=True)
        with contextlib.suppress(KeyboardInterrupt):
            forward = ["port-forward", f"service/{service}", f"{port}:{_PORT}"]
            kubectl(config, [f"--namespace={service}", *forward])


def open_grafana(exported: "StackOutputs | ManagerOutputs", *, team: str, port: int, rehearsed: bool) -> None:
    """Forward a port to Grafana. Raises UserError where there is none, and for teams."""
    if team:
        fix = "Leave out --team, as an administrator of the cluster."
        rule = "Grafana has one login, which shows all teams"
        raise UserError([Problem("--team", team, rule, fix, code="team-not-supported")])
    if rehearsed:
        fix = "Deploy the stack; dashboards are in components/kubernetes/monitoring/dashboards."
        rule = "a rehearsal does not run what charts install"
        raise UserError([Problem("grafana", "--rehearse", rule, fix, code="grafana-not-rehearsed")])
    with kubeconfig_file(exported) as config:
        where = f"--namespace={_MONITORING}"
        fix = "Log in to the cloud as an administrator; layout.monitoring has to be in_cluster."
        found = _secret(config, where, _GRAFANA_LOGIN, at=("grafana", _GRAFANA_LOGIN), fix=fix)
        login = {key: found[key] for key in ("username", "password")}
        _show(f"http://localhost:{port}", login, secret=True)
        with contextlib.suppress(KeyboardInterrupt):
            kubectl(config, [where, "port-forward", "service/grafana", f"{port}:{_GRAFANA_PORT}"])


def show_rehearsed(exported: "StackOutputs", rehearsal: "Rehearsal", team: str) -> None:
    """Show the URL of a rehearsed server, and a login that exists only on this machine."""
    if team:
        found = rehearsal.kept_secret(namespace_of(exported, team), _SECRET) or {}
        login = {"username": found.get(_USER), "password": found.get(_PASSWORD)}
    else:
        login = dict(rehearsal.secret(exported.mlflow_admin_secret) or {})
    _show(rehearsal.service_url(exported.mlflow_url) or "not running", login, secret=False)


def deployed(stack: str, *, rehearse: bool) -> "tuple[StackOutputs, Rehearsal | None]":
    """The outputs of a stack with a cluster that runs jobs, and its rehearsal.

    Raises UserError where there is none.
    """
    from infra.outputs.manager import ManagerOutputs  # noqa: PLC0415

    found, rehearsal = with_cluster(stack, rehearse=rehearse)
    if isinstance(found, ManagerOutputs):
        names = ", ".join(found.clusters.values())
        rule, fix = "is the manager of several clusters", f"Name one of their stacks: {names}."
        raise UserError([Problem("stack", stack, rule, fix, code="stack-is-manager")])
    return found, rehearsal


def with_cluster(stack: str, *, rehearse: bool) -> "tuple[StackOutputs | ManagerOutputs, Rehearsal | None]":
    """The outputs of a stack with a cluster, a manager's too, and its rehearsal.

    Raises UserError where there is none.
    """
    from infra.outputs import cluster as outputs  # noqa: PLC0415
    from infra.outputs import jobs as job_outputs  # noqa: PLC0415
    from infra.outputs import manager as manager_outputs  # noqa: PLC0415
    from infra.outputs import slurm as slurm_outputs  # noqa: PLC0415
    from trainstack.cli.operations.session import not_deployed, only_slurm, open_engine  # noqa: PLC0415

    engine, rehearsal = open_engine(stack, rehearse=rehearse)
    found = {key: output.value for key, output in engine.outputs().items()}
    if outputs.KEY not in found:
        raise not_deployed(stack, rehearse=rehearse)
    if job_outputs.is_of_jobs(found):
        fix = f"`trainstack status -s {stack}` shows its people, machines and tracking."
        rule = "has no cluster, only managed jobs"
        raise UserError([Problem("stack", stack, rule, fix, code="stack-has-no-cluster")])
    if manager_outputs.is_of_manager(found):
        return manager_outputs.parse(found), rehearsal
    if slurm_outputs.is_of_slurm(found):
        raise UserError([only_slurm(stack, rehearse=rehearse)])
    return outputs.parse(found), rehearsal


def kubeconfig_of(exported: "StackOutputs | ManagerOutputs", team: str) -> str:
    """The kubeconfig of the stack or, in its namespace, of a team. Raises UserError for an unknown team."""
    config = json.loads(exported.kubeconfig)
    for row in config["contexts"] if team else ():
        row["context"]["namespace"] = namespace_of(exported, team)
    return json.dumps(config, indent=2)


@contextlib.contextmanager
def kubeconfig_file(exported: "StackOutputs | ManagerOutputs", team: str = "") -> Iterator[Path]:
    """A temporary file with that kubeconfig. Raises UserError for an unknown team."""
    with tempfile.TemporaryDirectory(prefix="trainstack-") as folder:
        config = Path(folder, "kubeconfig")
        config.write_text(kubeconfig_of(exported, team))
        yield config


def namespace_of(exported: "StackOutputs | ManagerOutputs", team: str) -> str:
    """The namespace of a team. Raises UserError for an unknown team."""
    known = {row.name: row.namespace for row in exported.teams}
    if team not in known:
        fix = f"Teams are {', '.join(sorted(known))}."
        raise UserError([Problem("--team", team, "is not a team of the stack", fix, code="unknown-team")])
    return known[team]


def _team_login(config: Path, exported: "StackOutputs", team: str) -> dict[str, str]:
    where, fix = f"--namespace={namespace_of(exported, team)}", "Log in to the cloud as a member of the team."
    found = _secret(config, where, _SECRET, at=("--team", team), fix=fix)
    return {"username": found[_USER], "password": found[_PASSWORD]}


def _secret(config: Path, where: str, name: str, *, at: tuple[str, str], fix: str) -> Mapping[str, str]:
    """The fields of a Secret. Raises UserError, with path and value of `at`, where it cannot be read."""
    done = kubectl(config, [where, "get", "secret", name, "--output=json"], capture=True)
    if done.returncode:
        rule = f"its login cannot be read: {done.stderr.strip()}"
        raise UserError([Problem(*at, rule, fix, code="login-unreadable")])
    return {key: base64.b64decode(text).decode() for key, text in json.loads(done.stdout)["data"].items()}


def _first_user(exported: "StackOutputs") -> dict[str, str]:
    try:
        return services_of(exported.cloud).read_secret(exported)
    except Exception as error:  # boto3 makes its exception classes at run time
        fix = "Log in to the cloud as an administrator, or name your team: --team."
        secret, rule = exported.mlflow_admin_secret, f"its secret cannot be read: {error}"
        raise UserError([Problem("mlflow", secret, rule, fix, code="login-unreadable")]) from error


def on_terminal() -> bool:
    """Return whether the output is a terminal, not a file or a log."""
    return sys.stdout.isatty()


def _show(url: str, login: Mapping[str, str | None], *, secret: bool) -> None:
    """Show a login; the password of a real one only on a terminal."""
    hidden = secret and not on_terminal()
    password = "shown on a terminal only" if hidden else login.get("password") or "not created yet"
    username = login.get("username") or "not created yet"
    print_fields([("url", url), ("username", username), ("password", password)], width=9)


def kubectl(
    config: Path, arguments: Sequence[str], *, capture: bool = False, given: str | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run kubectl; `given` is its input. Raises SetupError when it is not installed."""
    command = ["kubectl", f"--kubeconfig={config}", *arguments]
    try:
        return subprocess.run(command, check=False, capture_output=capture, text=True, input=given)
    except FileNotFoundError as error:
        raise SetupError("kubectl is not installed", "See kubernetes.io/docs/tasks/tools.") from error
