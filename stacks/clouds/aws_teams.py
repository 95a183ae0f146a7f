"""The teams of a stack on AWS."""

from collections.abc import Mapping

import pulumi

from components.aws.cluster.eks import AwsCluster
from components.aws.storage.tiers import AwsStorage
from components.aws.storage.volumes import efs_source, lustre_source
from components.aws.teams.members import AwsMembers
from components.aws.teams.team_data import SHARED, TEAMS, AwsTeamData, AwsTeamDataArgs
from components.kubernetes.people import group
from components.kubernetes.volumes import VolumeArgs
from components.ordering import after
from infra.naming import team_group, team_namespace
from infra.stackspec import StackSpec
from infra.stackspec.stack import TeamSpec
from stacks.parts import SharedFolder, TeamData

CHECKPOINTS, DATASETS, SHARED_DATASETS, HOME = "checkpoints", "datasets", "shared-datasets", "home"
# Lustre links this folder to the dataset bucket.
_DATASET_FOLDER = "datasets"
# EFS grows with what is in it, and a claim has to say a size.
_HOME_GIB = 1024


def teams_on_aws(
    spec: StackSpec,
    eks: AwsCluster,
    tiers: AwsStorage,
    shared: SharedFolder | None,
    opts: pulumi.ResourceOptions,
) -> Mapping[str, TeamData]:
    """Members' access to the cluster, and each team's rights to its own data, by the team's name."""
    groups = {member: team_group(team.name) for team in spec.teams for member in team.members}
    AwsMembers(f"{spec.name}-members", {"cluster_name": eks.cluster_name, "groups": groups}, opts)
    found = {}
    for team in spec.teams:
        # Named after the folder: a team that gets another name and keeps its folder keeps all of this.
        name = f"{spec.name}-team-{team.data_folder}"
        data = AwsTeamData(name, _rights(spec, team, eks, tiers), opts)
        found[team.name] = _data(team, data, tiers, shared)
    return found


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
    volumes: dict[str, VolumeArgs] = {}
    written: dict[str, str] = {}
    read: dict[str, str] = {}
    if shared and tiers.lustre:
        written = {CHECKPOINTS: f"{shared.folder}/{below}"}
        read = {DATASETS: f"{_DATASET_FOLDER}/{below}", SHARED_DATASETS: f"{_DATASET_FOLDER}/{SHARED}"}
        for claim, folder in {**written, **read}.items():
            source = lustre_source(tiers.lustre, folder, read_only=claim in read)
            volumes[claim] = {"source": source, "capacity_gib": shared.volume["capacity_gib"]}
    if tiers.homes and data.access_point_id:
        home = efs_source(tiers.homes.file_system_id, data.access_point_id)
        volumes[HOME] = {"source": home, "capacity_gib": _HOME_GIB}
    return TeamData(
        checkpoint_uri=after(pulumi.Output.concat("s3://", tiers.checkpoint_bucket, f"/{below}"), [data]),
        dataset_uri=after(pulumi.Output.concat("s3://", tiers.dataset_bucket, f"/{below}"), [data]),
        volumes=volumes,
        people=[group(team_group(team.name))],
        folders=list(written.values()),
        read_folders=list(read.values()),
    )
