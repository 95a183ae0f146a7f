"""Access of members to the cluster, and of a team's pods to data."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pulumi
import pytest

from components.gcp.teams.members import GcpMembers, subject
from components.gcp.teams.team_data import GcpTeamData, GcpTeamDataArgs
from infra.errors import UserError
from tests.components.graph import Graph, deploy_graph

ARGS = {
    "project": "ml-train-prod",
    "project_number": "123456789012",
    "namespace": "team-vision",
    "folder": "vision",
    "checkpoint_bucket": "ck",
    "dataset_bucket": "ds",
    "shared_folder": "shared/",
}
ADA, ML = "user:ada@example.com", "group:ml@example.com"


def data(**changes: Any) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        given = {key: value for key, value in (ARGS | changes).items() if value is not None}
        made = GcpTeamData("dev-team-vision", cast(GcpTeamDataArgs, given))
        return {"datasets": made.datasets, "checkpoints": made.checkpoints}

    return deploy_graph(program)


def members(*who: str) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        GcpMembers("dev-members", {"project": "ml-train-prod", "members": who})
        return {}

    return deploy_graph(program)


def granted(made: Graph) -> set[tuple[str, str, str]]:
    return {
        (row["bucket"], row["managedFolder"], row["role"])
        for row in made.all("ManagedFolderIamMember").values()
    }


def whose(made: Graph) -> set[str]:
    return {row["member"].partition("/subject/ns/")[2] for row in made.all("ManagedFolderIamMember").values()}


def test_pods_read_datasets_and_write_checkpoints_of_their_team_and_nothing_else() -> None:
    made = data()
    assert granted(made) == {
        ("ds", "shared/", "roles/storage.objectViewer"),
        ("ds", "teams/vision/", "roles/storage.objectViewer"),
        ("ck", "teams/vision/", "roles/storage.objectUser"),
    }
    # No role on a whole bucket, a key or the project.
    kinds = {
        one.type for one in made.cloud.asked if "iam" in one.type.lower() and one.type.startswith("gcp:")
    }
    assert kinds == {"gcp:storage/managedFolderIamMember:ManagedFolderIamMember"}


def test_a_role_is_about_a_folder_and_not_about_names_that_begin_alike() -> None:
    assert all(folder.endswith("/") for _, folder, _ in granted(data()))


def test_rights_are_those_of_pods_that_name_no_account() -> None:
    assert whose(data()) == {"team-vision/sa/default"}


def test_a_fast_bucket_has_the_teams_folder_too() -> None:
    assert ("fast", "teams/vision/", "roles/storage.objectUser") in granted(data(rapid_bucket="fast"))


def test_mounted_buckets_are_read_as_a_whole_beside_the_folders() -> None:
    made = data(mounted_buckets={"datasets": "own", "shared-datasets": "all"})
    rows = made.all("BucketIAMMember").values()
    assert {(row["bucket"], row["role"]) for row in rows} == {
        ("own", "roles/storage.objectViewer"),
        ("all", "roles/storage.objectViewer"),
    }
    assert {row["member"] for row in rows} == {
        row["member"] for row in made.all("ManagedFolderIamMember").values()
    }
    assert granted(made) == granted(data())


def test_what_a_team_leaves_behind_stays() -> None:
    for folder in data(rapid_bucket="fast").all("ManagedFolder").values():
        # Only the folder's roles go; without it, a folder with objects could not go at all.
        assert folder["forceDestroy"] is True


def test_a_team_that_is_renamed_and_keeps_its_folder_keeps_its_data() -> None:
    before, after = data(), data(namespace="team-perception")
    assert before.all("ManagedFolder") == after.all("ManagedFolder")
    assert granted(before) == granted(after)
    assert whose(after) == {"team-perception/sa/default"}


def test_without_a_cluster_there_are_the_same_folders_and_no_roles() -> None:
    with_pods, without = data(), data(namespace=None)
    assert without.all("ManagedFolder") == with_pods.all("ManagedFolder")
    assert granted(without) == set()
    assert without.outputs == {"datasets": "teams/vision/", "checkpoints": "teams/vision/"}


def test_members_connect_to_clusters_and_have_no_right_to_anything_in_them() -> None:
    made = members(ADA, ML)
    rows = made.all("projects/iAMMember:IAMMember").values()
    assert {row["role"] for row in rows} == {"roles/container.clusterViewer"}
    assert {row["member"] for row in rows} >= {ADA, ML}
    assert {row["project"] for row in rows} == {"ml-train-prod"}


def test_who_changes_teams_or_has_a_namesake_keeps_the_right() -> None:
    before = members(ADA).all("IAMMember")
    assert members("user:bob@example.com", ADA).all("IAMMember").keys() > before.keys()
    assert len(members("user:a.b@example.com", "user:a-b@example.com").all("IAMMember")) == 2


def test_subjects_are_addresses_and_google_groups() -> None:
    assert subject(ADA) == {"kind": "User", "name": "ada@example.com"}
    assert subject(ML) == {"kind": "Group", "name": "ml@example.com"}
    account = "ci@ml-train-prod.iam.gserviceaccount.com"
    assert subject(f"serviceAccount:{account}") == {"kind": "User", "name": account}


@pytest.mark.parametrize(
    "wrong",
    [
        ("ada@example.com",),
        ("user:ada",),
        ("serviceAccount:ci@p.iam.gserviceaccount.com",),
        ("user:Ada@example.com", "allUsers"),
    ],
)
def test_members_that_would_never_get_in_are_refused_all_at_once(wrong: Sequence[str]) -> None:
    with pytest.raises(UserError) as refusal:
        members(ADA, *wrong)
    assert [problem.value for problem in refusal.value.problems] == list(wrong)
