"""Cluster and teams of a command: of a stack, or of a kubeconfig alone, which is all that a member has."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infra.errors import Problem, UserError
from infra.naming import team_namespace
from trainstack.cli.access import kubeconfig_file, namespace_of, with_cluster

if TYPE_CHECKING:  # help needs none of them
    from infra.clouds.kubectl import ApiResponse, ClusterApi
    from infra.outputs.cluster import StackOutputs
    from infra.outputs.manager import ManagerOutputs
    from rehearsal.client import Rehearsal

# As in components/kubernetes/queueing/kueue.py, which imports the engine's packages.
_TEAM_LABEL, _TEAM_NAME = "trainstack.dev/team", "trainstack.dev/team-name"
_NAMESPACES = "/api/v1/namespaces"
# A label of RFC 1123.
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_OK, _DENIED, _MISSING = 200, 403, 404

OfStack = Annotated[
    str | None,
    typer.Option(
        "--stack",
        "-s",
        help="A stack file stacks/config/Pulumi.<stack>.yaml, whose state you can read. "
        "Default: the cluster of your kubeconfig.",
    ),
]
OfTeam = Annotated[str, typer.Option("--team", "-t", help="Only this team; its members are denied others.")]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig", help="Kubeconfig; default: KUBECONFIG, else ~/.kube/config.", metavar="FILE"
    ),
]
Context = Annotated[
    str | None, typer.Option("--context", help="Context of the kubeconfig; default: the current one.")
]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace", "-n", help="Only the team of this namespace; default: that of the context, if any."
    ),
]
Everyone = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="All teams, whatever the context names.")
]


@dataclass(frozen=True)
class ClusterLogin:
    """Options that select a cluster and a team without a stack."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str = ""
    everyone: bool = False

    @property
    def given(self) -> Iterator[tuple[str, str]]:
        """Options that were given, with their values."""
        values = {
            "--kubeconfig": str(self.kubeconfig or ""),
            "--context": self.context or "",
            "--namespace": self.namespace,
            "--all-namespaces": "yes" if self.everyone else "",
        }
        return ((name, value) for name, value in values.items() if value)


@dataclass(frozen=True)
class Scope:
    """A cluster, and the teams that the command is about."""

    name: str
    """Name of the stack, or of the context."""
    cluster: "ClusterApi"
    teams: Mapping[str, str]
    """Names of teams by namespace."""
    only: str | None
    """Namespace of the one team that was asked for."""
    clusters: Mapping[str, str] = field(default_factory=dict)
    """Of a manager: the stack of each cluster, by its name."""


@contextmanager
def scope(stack: str | None, team: str, login: ClusterLogin, *, rehearse: bool) -> Iterator[Scope]:
    """Connect to the cluster of a stack or, without one, of the kubeconfig. Raises UserError."""
    from infra.clouds.kubectl import connected  # noqa: PLC0415 - help needs none of them

    if problems := list(_conflicts(stack, team, login, rehearse=rehearse)):
        raise UserError(problems)
    if stack is None:
        with connected(login.context, login.kubeconfig) as cluster:
            yield _of_cluster(cluster, team, login)
        return
    exported, rehearsal = with_cluster(stack, rehearse=rehearse)
    only = namespace_of(exported, team) if team else None
    teams = {one.namespace: one.name for one in exported.teams}
    clusters = getattr(exported, "clusters", {})
    if rehearsal is not None:
        with connected(None, rehearsed_kubeconfig(rehearsal, exported)) as cluster:
            yield Scope(exported.stack, cluster, teams, only, clusters)
        return
    with kubeconfig_file(exported, team) as config, connected(None, config) as cluster:
        yield Scope(exported.stack, cluster, teams, only, clusters)


def _conflicts(stack: str | None, team: str, login: ClusterLogin, *, rehearse: bool) -> Iterator[Problem]:
    code = "option-conflict"
    if stack is not None:
        rule = "selects a cluster or a team without a stack"
        for name, value in login.given:
            yield Problem(name, value, rule, f"Leave out --stack or {name}.", "--stack", code=code)
        return
    if rehearse:
        yield Problem("--stack", None, "is required with --rehearse", "Add -s NAME.", code="option-missing")
    chosen = [("--team", team)] if team else []
    chosen += [one for one in login.given if one[0] in ("--namespace", "--all-namespaces")]
    for name, value in chosen[1:]:
        first = chosen[0][0]
        yield Problem(name, value, "selects other teams", f"Leave out {first} or {name}.", first, code=code)
    if login.kubeconfig and not login.kubeconfig.is_file():
        fix = "Name the file that an administrator wrote with `trainstack kubeconfig -s STACK --team TEAM`."
        yield Problem("--kubeconfig", str(login.kubeconfig), "no such file", fix, code="kubeconfig-missing")


def _of_cluster(cluster: "ClusterApi", team: str, login: ClusterLogin) -> Scope:
    """The teams that the API server names. Raises UserError where it names none to this login."""
    path, value = ("--team", team) if team else ("--namespace", login.namespace)
    named = _namespace(team) if team else login.namespace
    namespace = named or ("" if login.everyone else cluster.namespace)
    name = cluster.context or cluster.server
    if namespace and not _NAME.fullmatch(namespace):
        rule, fix = "is no name of a namespace", "Write letters, digits and dashes, such as team-research."
        raise UserError([Problem(path, value or namespace, rule, fix, code="namespace-invalid")])
    if namespace:
        response = _get(cluster, f"{_NAMESPACES}/{namespace}")
        if response.status == _OK and _is_team(response.body):
            return Scope(name, cluster, {namespace: _name(response.body)}, namespace)
        if named:
            raise UserError([_refused(path, value, namespace, cluster, response)])
    response = _get(cluster, _NAMESPACES, labelSelector=_TEAM_LABEL)
    if response.status != _OK:
        path, value = ("context", namespace) if namespace else ("cluster", cluster.server)
        raise UserError([_refused(path, value, namespace, cluster, response)])
    teams = {one["metadata"]["name"]: _name(one) for one in response.body.get("items") or ()}
    if not teams:
        rule, fix = "has no teams of a stack", "Choose another cluster: --context, --kubeconfig or --stack."
        raise UserError([Problem("cluster", cluster.server, rule, fix, code="cluster-without-teams")])
    return Scope(name, cluster, teams, None)


def _get(cluster: "ClusterApi", path: str, **query: str) -> "ApiResponse":
    """The response. Raises UserError where there is no API server."""
    from infra.clouds.kubectl import unanswered  # noqa: PLC0415

    response = cluster.get(path, **query)
    if response.status not in (_OK, _DENIED, _MISSING):
        raise unanswered(cluster, response)
    return response


def _refused(
    path: str, value: str, namespace: str, cluster: "ClusterApi", response: "ApiResponse"
) -> Problem:
    """The problem with a namespace, or with all of them, that does not show a team."""
    if response.status == _DENIED:
        what = (
            f"access to namespace {namespace}, or has none of this name" if namespace else "a list of teams"
        )
        rule = f"{cluster.server} denies {what}: {response.message}"
        fix = "Add --team with the name of your team, log in as its member, or choose another --context."
        return Problem(path, value, rule, fix, code="cluster-access-denied")
    known = "is not of a team" if response.status == _OK else "does not exist"
    fix = "Add --team with a team of the stack, or choose another cluster: --context, --kubeconfig."
    return Problem(
        path, value, f"namespace {namespace} of {cluster.server} {known}", fix, code="unknown-team"
    )


def _namespace(team: str) -> str:
    """The namespace of a team. Raises UserError for a name without letters and digits."""
    try:
        return team_namespace(team)
    except ValueError as error:
        fix = "Write the name of a team as the stack file has it."
        raise UserError([Problem("--team", team, str(error), fix, code="unknown-team")]) from None


def _is_team(namespace: Mapping[str, Any]) -> bool:
    return _TEAM_LABEL in (namespace["metadata"].get("labels") or {})


def _name(namespace: Mapping[str, Any]) -> str:
    """The team's own name; clusters of older stacks have only that of the namespace."""
    about = namespace["metadata"]
    return str((about.get("annotations") or {}).get(_TEAM_NAME) or about["name"])


def rehearsed_kubeconfig(rehearsal: "Rehearsal", exported: "StackOutputs | ManagerOutputs") -> Path:
    """The kubeconfig of the administrator. Raises UserError where the cluster is only emulated."""
    stack = exported.stack
    from rehearsal.cluster_kind import real_cluster  # noqa: PLC0415
    from rehearsal.realcluster.real_provider import admin_kubeconfig  # noqa: PLC0415

    if not real_cluster(rehearsal.home):
        rule = "emulated Kubernetes does not run Kueue, and no program of the ledger"
        fix = f"Rehearse with a real control plane: trainstack up -s {stack} --rehearse --cluster real."
        raise UserError([Problem("--rehearse", stack, rule, fix, code="queue-needs-control-plane")])
    return admin_kubeconfig(rehearsal.home, exported.kubeconfig)
