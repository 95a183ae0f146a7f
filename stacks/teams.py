"""Teams of a stack: volumes, settings and logins in their namespaces, and their outputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components.kubernetes.queueing.kueue import GATE_NAMESPACE
from components.kubernetes.queueing.queues import Queueing
from components.kubernetes.teams.checkpoints import TeamCheckpoints
from components.kubernetes.teams.claims import TeamClaims, TeamVolumes
from components.kubernetes.teams.folders import HOMES_NAMESPACE, SharedFolders, SharedFoldersArgs
from components.kubernetes.tracking.logins import LoginArgs, MlflowLogins
from components.kubernetes.tracking.port_forward import MlflowVisitors
from infra.catalog.kubernetes.kueue import DEFAULT_QUEUE
from infra.checkpoints import checkpoints
from infra.naming import team_namespace
from infra.stackspec import StackSpec
from infra.stackspec.stack import TeamSpec
from smoke_training.names import EXPERIMENT
from stacks.parts import Cluster, Store, TeamData, Tracking


def team_volumes(
    spec: StackSpec, data: Mapping[str, TeamData], cluster: Cluster
) -> Mapping[str, pulumi.Resource]:
    """The volumes of each team, by its name."""
    return {
        team.name: TeamVolumes(
            f"{spec.name}-{team_namespace(team.name)}-volumes",
            {
                "namespace": team_namespace(team.name),
                "volumes": data[team.name].volumes,
                "claims": _claims(spec, team),
            },
            cluster.inside,
        )
        for team in spec.teams
    }


def _claims(spec: StackSpec, team: TeamSpec) -> str:
    return f"{spec.name}-{team_namespace(team.name)}-claims"


def teams_at_work(
    spec: StackSpec,
    data: Mapping[str, TeamData],
    *,
    cluster: Cluster,
    store: Store,
    queueing: Queueing,
    tracking: Tracking,
) -> Sequence[Mapping[str, Any]]:
    """Declare the volumes of teams; returns the fields of `infra.outputs.cluster.TeamOutputs` of each."""
    made = _folders(spec, cluster, store, data, tracking)
    ready, after_policies = cluster.after(*made), cluster.after(queueing)
    often = checkpoints(spec)
    found = []
    for team in spec.teams:
        own, namespace = data[team.name], queueing.team_namespaces[team.name]
        TeamCheckpoints(
            f"{spec.name}-{team_namespace(team.name)}-checkpoints",
            {
                "namespace": namespace,
                "uri": own.checkpoint_uri,
                "interval_s": often.interval_s,
                "keep_last": spec.data.checkpoints.keep_last,
                "keep_every_hours": spec.data.checkpoints.keep_every_hours,
            },
            after_policies,
        )
        claims = TeamClaims(
            _claims(spec, team),
            {"namespace": namespace, "volumes": own.volumes},
            pulumi.ResourceOptions.merge(
                ready, pulumi.ResourceOptions(deleted_with=queueing.spaces[team_namespace(team.name)])
            ),
        )
        found.append(
            {
                "name": team.name,
                "namespace": namespace,
                "queue": DEFAULT_QUEUE,
                "claims": claims.claims,
                "checkpoint_uri": own.checkpoint_uri,
                "dataset_uri": own.dataset_uri,
            }
        )
    return found


def logins(spec: StackSpec, cluster: Cluster, queueing: Queueing, tracking: Tracking) -> MlflowLogins:
    """A user of the tracking server for each team and for the validation, with an experiment."""
    wanted: list[LoginArgs] = [
        {
            # By folder, not name: a renamed team keeps its runs with its other data.
            "user": f"team-{team.data_folder}",
            "namespace": team_namespace(team.name),
            "experiment": f"team-{team.data_folder}",
            "permission": "MANAGE",
        }
        for team in spec.teams
    ]
    if spec.smoke.enabled:
        wanted.append(
            {
                "user": "validation",
                "namespace": GATE_NAMESPACE,
                "experiment": EXPERIMENT,
                "permission": "EDIT",
            }
        )
    return MlflowLogins(
        f"{spec.name}-logins",
        {
            "url": tracking.url,
            "admin_secret": tracking.admin_secret,
            "secret_store": tracking.secret_store,
            "grants": tracking.grants,
            "image": tracking.image,
            "logins": wanted,
        },
        cluster.after(queueing),
    )


def visitors(spec: StackSpec, data: Mapping[str, TeamData], cluster: Cluster, tracking: Tracking) -> None:
    """Declare access of team members to the tracking server by a port-forward."""
    people = [one for team in spec.teams for one in data[team.name].people]
    MlflowVisitors(
        f"{spec.name}-mlflow-visitors", {"namespace": tracking.namespace, "people": people}, cluster.inside
    )


def _folders(
    spec: StackSpec, cluster: Cluster, store: Store, data: Mapping[str, TeamData], tracking: Tracking
) -> list[pulumi.Resource]:
    """Resources that create mounted folders of teams, on file systems that do not create them."""
    wanted = [folder for own in data.values() for folder in own.folders]
    read = [folder for own in data.values() for folder in own.read_folders]
    homes = [own.home for own in data.values() if own.home]
    made: list[pulumi.Resource] = []
    if store.checkpoints and wanted:
        shared: SharedFoldersArgs = {
            "volume": store.checkpoints.volume,
            "folders": wanted,
            "read_only": list(dict.fromkeys(read)),
            "image": tracking.image,
        }
        made.append(SharedFolders(f"{spec.name}-folders", shared, cluster.inside))
    if store.homes and homes:
        own: SharedFoldersArgs = {
            "volume": store.homes,
            "folders": homes,
            "read_only": [],
            "image": tracking.image,
            "namespace": HOMES_NAMESPACE,
        }
        made.append(SharedFolders(f"{spec.name}-home-folders", own, cluster.inside))
    return made
