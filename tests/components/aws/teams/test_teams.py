"""Access of members to the cluster, and of a team's pods to data."""

import json
from collections.abc import Mapping
from typing import Any, cast

import pulumi
import pytest

from components.aws.teams.members import AwsMembers
from components.aws.teams.team_data import AwsTeamData, AwsTeamDataArgs, team_rights
from rehearsal.dataplane.aws.iam_policies import AccessCheck, permits
from tests.components.graph import Graph, deploy_graph

ADA, BOB = "arn:aws:iam::111122223333:user/ada", "arn:aws:iam::111122223333:role/ml/bob"
CHECKPOINTS, DATASETS, KEY = "arn:aws:s3:::ck", "arn:aws:s3:::ds", "arn:aws:kms:us-east-1:111122223333:key/k"
ARGS = {
    "region": "us-east-1",
    "cluster_name": "dev",
    "cluster_arn": "arn:aws:eks:us-east-1:111122223333:cluster/dev",
    "namespace": "team-vision",
    "folder": "vision",
    "checkpoint_bucket_arn": CHECKPOINTS,
    "dataset_bucket_arn": DATASETS,
    "kms_key_arn": KEY,
}


def data(**changes: Any) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = AwsTeamData("dev-team-vision", cast(AwsTeamDataArgs, ARGS | changes))
        return {"role": made.role_arn}

    return deploy_graph(program)


def members(groups: Mapping[str, str]) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        AwsMembers("dev-members", {"cluster_name": "dev", "groups": groups})
        return {}

    return deploy_graph(program)


def test_a_member_is_in_the_group_of_one_team_and_has_no_policy_of_the_cluster() -> None:
    made = members({ADA: "trainstack:team:vision", BOB: "trainstack:team:research"})
    entries = {row["principalArn"]: row["kubernetesGroups"] for row in made.all("AccessEntry").values()}
    assert entries == {ADA: ["trainstack:team:vision"], BOB: ["trainstack:team:research"]}
    assert not made.all("AccessPolicyAssociation")


def test_who_changes_teams_keeps_the_entry() -> None:
    # A second one for the same principal would be refused while the first is there.
    before = members({ADA: "trainstack:team:vision"}).all("AccessEntry")
    assert members({ADA: "trainstack:team:research", BOB: "x"}).all("AccessEntry").keys() > before.keys()


OWN, OTHER = "teams/vision/run/step-1.pt", "teams/vision-2/run/step-1.pt"
MAY = [
    ("s3:GetObject", f"{DATASETS}/teams/vision/a"), ("s3:GetObject", f"{DATASETS}/shared/imagenet/0.tar"),
    *((action, f"{CHECKPOINTS}/{OWN}") for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")),
]  # fmt: skip
MAY_NOT = [
    ("s3:PutObject", f"{DATASETS}/teams/vision/a"), ("s3:DeleteObject", f"{DATASETS}/shared/imagenet/0.tar"),
    ("s3:GetObject", f"{DATASETS}/teams/research/a"), ("s3:GetObject", f"{DATASETS}/a"),
    *((action, f"{CHECKPOINTS}/{OTHER}") for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")),
    ("s3:GetObject", f"{CHECKPOINTS}/smoke/result.json"), ("s3:DeleteObjectVersion", f"{CHECKPOINTS}/{OWN}"),
    ("s3:ListBucketVersions", CHECKPOINTS), ("s3:ListBucket", CHECKPOINTS), ("kms:Decrypt", KEY),
]  # fmt: skip
LISTED = {
    (CHECKPOINTS, "teams/vision/"): True, (CHECKPOINTS, "teams/vision/run/"): True,
    (CHECKPOINTS, "teams/vision"): False, (CHECKPOINTS, "teams/"): False, (CHECKPOINTS, ""): False,
    (CHECKPOINTS, "shared/"): False, (DATASETS, "shared/"): True, (DATASETS, "teams/research/"): False,
}  # fmt: skip


def allowed(action: str, resource: str, **context: str) -> bool:
    document = team_rights(
        region="us-east-1", folder="vision", checkpoints=CHECKPOINTS, datasets=DATASETS, key_arn=KEY
    )
    return permits([json.loads(document)], AccessCheck(action, resource, context))


@pytest.mark.parametrize(("action", "resource"), MAY)
def test_pods_read_datasets_and_write_checkpoints_of_their_team(action: str, resource: str) -> None:
    assert allowed(action, resource)


@pytest.mark.parametrize(("action", "resource"), MAY_NOT)
def test_pods_reach_nothing_of_others(action: str, resource: str) -> None:
    assert not allowed(action, resource)


@pytest.mark.parametrize(("bucket", "prefix"), LISTED)
def test_names_are_listed_below_the_own_folders_only(bucket: str, prefix: str) -> None:
    assert allowed("s3:ListBucket", bucket, **{"s3:prefix": prefix}) is LISTED[bucket, prefix]


def test_the_key_opens_objects_and_nothing_else() -> None:
    assert allowed("kms:Decrypt", KEY, **{"kms:ViaService": "s3.us-east-1.amazonaws.com"})
    assert not allowed("kms:Decrypt", KEY, **{"kms:ViaService": "secretsmanager.us-east-1.amazonaws.com"})


def test_the_role_is_that_of_pods_that_name_no_account() -> None:
    identity = data().find("PodIdentityAssociation")
    assert (identity["namespace"], identity["serviceAccount"]) == ("team-vision", "default")


def test_the_home_is_one_folder_for_any_user_of_a_container() -> None:
    assert not data().all("AccessPoint")
    point = data(homes_file_system_id="fs-1").find("AccessPoint")
    assert point["rootDirectory"]["path"] == "/teams/vision"
    assert point["rootDirectory"]["creationInfo"] == {
        "ownerUid": 1000,
        "ownerGid": 1000,
        "permissions": "0770",
    }
    assert point["posixUser"] == {"uid": 1000, "gid": 1000}
