"""The teams of a stack on Google Cloud."""

from collections.abc import Mapping, Sequence
from functools import partial

import pulumi

from components.gcp.storage.tiers import ALL_TEAMS, GcpStorage
from components.gcp.storage.volumes import bucket_source, filestore_source, lustre_source
from components.gcp.teams.members import GcpMembers, GcpMembersArgs, subject
from components.gcp.teams.team_data import TEAMS, GcpTeamData, GcpTeamDataArgs
from components.kubernetes.people import SubjectArgs
from components.ordering import after
from infra.naming import team_namespace
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.stack import TeamSpec
from stacks.clouds.gcp.storage import BUCKET_VOLUME_GIB, HOME_VOLUME_GIB, uri
from stacks.clouds.shared_claims import DATASETS, HOME, SHARED_DATASETS, SharedClaims, shared_claims
from stacks.parts import SharedFolder, TeamData

_SHARED = "shared"


def teams_on_gcp(
    spec: StackSpec,
    on: GcpSpec,
    *,
    number: pulumi.Output[str],
    workload_pool: pulumi.Output[str],
    tiers: GcpStorage,
    shared: SharedFolder | None,
    own_bindings: str | None,
    opts: pulumi.ResourceOptions,
) -> Mapping[str, TeamData]:
    """Members' access to the cluster, and each team's access to its own data, by team."""
    people = members_on_gcp(spec, on, own_bindings, opts)
    # IAM accepts the pods of a cluster once its identity pool exists.
    known = pulumi.Output.all(number, workload_pool).apply(lambda both: str(both[0]))
    found = {}
    for team in spec.teams:
        args: GcpTeamDataArgs = {
            "project": on.project,
            "project_number": known,
            "namespace": team_namespace(team.name),
            "folder": team.data_folder,
            "checkpoint_bucket": tiers.checkpoint_bucket,
            "dataset_bucket": tiers.dataset_bucket,
            "shared_folder": tiers.shared_folder,
        }
        if mounted := _mounted(team, tiers):
            args["mounted_buckets"] = mounted
        if tiers.rapid_bucket is not None:
            args["rapid_bucket"] = tiers.rapid_bucket
        # Named by folder: a renamed team with the same folder keeps these resources.
        data = GcpTeamData(f"{spec.name}-team-{team.data_folder}", args, opts)
        found[team.name] = _data(team, data, tiers, shared, people[team.name])
    return found


def members_on_gcp(
    spec: StackSpec, on: GcpSpec, own_bindings: str | None, opts: pulumi.ResourceOptions
) -> Mapping[str, Sequence[SubjectArgs]]:
    """Members' permission to connect to clusters of the project; as subjects of an API server, by team."""
    args: GcpMembersArgs = {
        "project": on.project,
        "members": sorted({member for team in spec.teams for member in team.members}),
    }
    if own_bindings is not None:
        args["own_bindings"] = own_bindings
    GcpMembers(f"{spec.name}-members", args, opts)
    return {team.name: [subject(member) for member in team.members] for team in spec.teams}


def _mounted(team: TeamSpec, tiers: GcpStorage) -> dict[str, pulumi.Output[str]]:
    """The buckets that the pods of a team mount, by claim."""
    keys = {DATASETS: team.data_folder, SHARED_DATASETS: ALL_TEAMS} if tiers.team_datasets else {}
    return {claim: tiers.team_datasets[key].bucket for claim, key in keys.items()}


def _data(
    team: TeamSpec,
    data: GcpTeamData,
    tiers: GcpStorage,
    shared: SharedFolder | None,
    people: Sequence[SubjectArgs],
) -> TeamData:
    below = f"{TEAMS}/{team.data_folder}"
    claims = SharedClaims()
    if shared and tiers.lustre:
        source = partial(lustre_source, tiers.lustre)
        claims = shared_claims(shared, source, below=below, common=_SHARED)
    volumes, mounted = dict(claims.volumes), _mounted(team, tiers)
    datasets = uri(mounted[DATASETS]) if mounted else uri(tiers.dataset_bucket, f"/{below}")
    for claim, bucket in mounted.items():
        volumes[claim] = {"source": bucket_source(bucket), "capacity_gib": BUCKET_VOLUME_GIB}
    if tiers.homes:
        volumes[HOME] = {"source": filestore_source(tiers.homes, below), "capacity_gib": HOME_VOLUME_GIB}
    return TeamData(
        checkpoint_uri=after(uri(tiers.checkpoint_bucket, f"/{below}"), [data]),
        dataset_uri=after(datasets, [data]),
        volumes=volumes,
        people=people,
        folders=claims.written,
        read_folders=claims.read,
        home=below if tiers.homes else None,
    )
