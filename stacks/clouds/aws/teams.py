"""The teams of a stack on AWS."""

from collections.abc import Mapping
from functools import partial

import pulumi

from components.aws.cluster.eks import AwsCluster
from components.aws.storage.tiers import AwsStorage
from components.aws.storage.volumes import efs_source, lustre_source
from components.aws.teams.members import AwsMembers
from components.aws.teams.team_data import SHARED, TEAMS, AwsTeamData, AwsTeamDataArgs
from components.kubernetes.people import group
from components.ordering import after
from infra.naming import team_group, team_namespace
from infra.stackspec import StackSpec
from infra.stackspec.stack import TeamSpec
from stacks.clouds.shared_claims import HOME, SharedClaims, shared_claims
from stacks.parts import SharedFolder, TeamData

# EFS grows with its content, but a claim must have a size.
_HOME_GIB = 1024


def teams_on_aws(
    spec: StackSpec,
    eks: AwsCluster,
    tiers: AwsStorage,
    shared: SharedFolder | None,
    opts: pulumi.ResourceOptions,
) -> Mapping[str, TeamData]:
    """Members' access to the cluster, and each team's access to its own data, by team."""
    members_on_aws(spec, eks, opts)
    found = {}
    for team in spec.teams:
        # Named by folder: a renamed team with the same folder keeps these resources.
        name = f"{spec.name}-team-{team.data_folder}"
        data = AwsTeamData(name, _rights(spec, team, eks, tiers), opts)
        found[team.name] = _data(team, data, tiers, shared)
    return found


def members_on_aws(spec: StackSpec, eks: AwsCluster, opts: pulumi.ResourceOptions) -> None:
    """Access of the members of all teams to the cluster."""
    groups = {member: team_group(team.name) for team in spec.teams for member in team.members}
    AwsMembers(f"{spec.name}-members", {"cluster_name": eks.cluster_name, "groups": groups}, opts)


def _rights(spec: StackSpec, team: TeamSpec, eks: AwsCluster, tiers: AwsStorage) -> AwsTeamDataArgs:
    args: AwsTeamDataArgs = {
        "region": spec.region,
        "cluster_name": eks.cluster_name,
        "cluster_arn": eks.cluster_arn,
        "namespace": team_namespace(team.name),
        "folder": team.data_folder,
        "checkpoint_bucket_arn": tiers.checkpoint_bucket_arn,
        "dataset_bucket_arn": tiers.dataset_bucket_arn,
        "kms_key_arn": tiers.kms_key_arn,
    }
    if tiers.homes:
        args["homes_file_system_id"] = tiers.homes.file_system_id
    return args


def _data(team: TeamSpec, data: AwsTeamData, tiers: AwsStorage, shared: SharedFolder | None) -> TeamData:
    below = f"{TEAMS}/{team.data_folder}"
    claims = SharedClaims()
    if shared and tiers.lustre:
        source = partial(lustre_source, tiers.lustre)
        claims = shared_claims(shared, source, below=below, common=SHARED)
    volumes = dict(claims.volumes)
    if tiers.homes and data.access_point_id:
        home = efs_source(tiers.homes.file_system_id, data.access_point_id)
        volumes[HOME] = {"source": home, "capacity_gib": _HOME_GIB}
    return TeamData(
        checkpoint_uri=after(pulumi.Output.concat("s3://", tiers.checkpoint_bucket, f"/{below}"), [data]),
        dataset_uri=after(pulumi.Output.concat("s3://", tiers.dataset_bucket, f"/{below}"), [data]),
        volumes=volumes,
        people=[group(team_group(team.name))],
        folders=claims.written,
        read_folders=claims.read,
    )
