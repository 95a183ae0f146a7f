"""Access and data of teams after changes of the stack file, and denied actions."""

import json
from collections.abc import Callable
from typing import Any

from tests.components.graph import Graph
from tests.stacks.composition.composed import composed
from tests.stacks.composition.describe import difference

PAIR = ("medium", "aws")
# A resource of these kinds holds data, or is the way to some.
DATA = ("Bucket ", "FileSystem ", "LustreFileSystem ", "AccessPoint ", "DataRepositoryAssociation ")


def renamed(**more: str) -> Callable[[Any], None]:
    def change(spec: Any) -> None:
        assert spec["teams"][1]["name"] == "Vision"
        spec["teams"][1].update(name="Perception", **more)

    return change


def moved(spec: Any) -> None:
    """The one member of Vision works for Research from now on."""
    spec["teams"][0]["members"] = [*spec["teams"][0]["members"], *spec["teams"][1].pop("members")]


def touching(lines: list[str], *kinds: str) -> list[str]:
    return [line for line in lines if line[2:].startswith(kinds)]


def statements(graph: Graph, role: str) -> list[Any]:
    return list(json.loads(graph.find("RolePolicy", f"{role}-rights")["policy"])["Statement"])


def test_a_team_that_is_renamed_and_keeps_its_folder_keeps_its_data_and_its_runs() -> None:
    before, after = composed(PAIR), composed(PAIR, renamed(folder="vision"))
    lines = difference(before, after)
    assert touching(lines, *DATA) == []
    # The same role, which another namespace is given: the rights stay what they were.
    assert not touching(lines, "RolePolicy team-vision")
    assert statements(before, "dev-team-vision-pods") == statements(after, "dev-team-vision-pods")
    claims = after.all("PersistentVolume")
    old = before.all("PersistentVolume")["dev-team-vision-volumes-checkpoints"]["spec"]["csi"]
    assert claims["dev-team-perception-volumes-checkpoints"]["spec"]["csi"] == old
    wanted = logins(after)
    (login,) = [row for row in wanted if row["namespace"] == "team-perception"]
    assert (login["user"], login["experiment"]) == ("team-vision", "team-vision")


def test_a_team_that_is_renamed_and_says_nothing_starts_empty_and_nothing_is_deleted() -> None:
    lines = difference(composed(PAIR), composed(PAIR, renamed()))
    # An access point is a door: the files behind it stay (EFS user guide, "Deleting access points").
    assert [line.partition(" <")[0] for line in touching(lines, *DATA)] == [
        "- AccessPoint team-vision-home",
        "+ AccessPoint team-perception-home",
    ]
    for volume in composed(PAIR).all("PersistentVolume").values():
        assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"


def test_dataset_claims_are_read_only() -> None:
    volumes = {
        row["spec"]["claimRef"]["name"]: row["spec"]
        for row in composed(PAIR).all("PersistentVolume").values()
        if row["spec"]["claimRef"]["namespace"] == "team-vision"
    }
    read_only = {claim for claim, spec in volumes.items() if "ro" in spec["mountOptions"]}
    assert read_only == {"datasets", "shared-datasets"} < volumes.keys()
    folders = {
        claim: volumes[claim]["csi"]["volumeAttributes"]["mountname"].partition("/")[2] for claim in read_only
    }
    assert folders == {"datasets": "datasets/teams/vision", "shared-datasets": "datasets/shared"}


def test_a_pod_can_mount_all_that_its_team_is_given() -> None:
    graph = composed(PAIR)
    volumes = [row["spec"] for row in graph.all("PersistentVolume").values()]
    given = [spec["csi"] for spec in volumes if spec["claimRef"]["namespace"] == "team-vision"]
    # The kubelet mounts one volume of those that a pod names with the same driver and handle.
    assert len({(csi["driver"], csi["volumeHandle"]) for csi in given}) == len(given) == 4
    args = graph.find("Job", "folders-job")["spec"]["template"]["spec"]["containers"][0]["args"]
    mounted = {str((csi.get("volumeAttributes") or {}).get("mountname")).partition("/")[2] for csi in given}
    assert mounted - {""} <= set(args)


def test_who_changes_teams_keeps_the_access_entry() -> None:
    lines = touching(difference(composed(PAIR), composed(PAIR, moved)), "AccessEntry")
    (line,) = lines
    assert line.startswith("~ ") and "trainstack:team:research" in line


def test_only_administrators_have_a_policy_of_the_whole_cluster() -> None:
    graph = composed(PAIR)
    policies = graph.all("AccessPolicyAssociation")
    entries = {name: row for name, row in graph.all("AccessEntry").items() if row.get("kubernetesGroups")}
    assert len(entries) == 2
    assert not {row["principalArn"] for row in policies.values()} & {
        row["principalArn"] for row in entries.values()
    }


def test_the_secret_of_the_first_user_is_for_the_server_and_for_what_makes_users() -> None:
    graph = composed(PAIR)
    readers = {
        name
        for name, row in graph.all("RolePolicy").items()
        if "secretsmanager:GetSecretValue" in json.dumps(row["policy"])
    }
    assert readers == {f"dev-tracking-{name}-rights" for name in ("mlflow", "schema", "logins")}
    assert [row["Action"] for row in statements(graph, "dev-smoke-role")] == [["sns:Publish"]]
    for kind in ("Job", "CronJob"):
        for row in graph.all(kind).values():
            assert "MLFLOW_CREDENTIALS_SECRET_ARN" not in json.dumps(row)


def test_kueue_and_the_teams_come_after_what_jobs_are_started_by() -> None:
    # Kueue looks for the kinds that it queues; TrainJobs hold their runtime until their namespace goes.
    assert "ClusterTrainingRuntime:dev-trainer-torch-a100" in composed(PAIR).edges["Queueing:dev-queueing"]


def test_the_validation_waits_for_its_login() -> None:
    graph = composed(PAIR)
    assert "Job:dev-logins-job" in graph.waits_for("Job:dev-smoke-a100-job")


def logins(graph: Graph) -> list[Any]:
    """The users of the Job of the logins."""
    args = graph.find("Job", "logins-job")["spec"]["template"]["spec"]["containers"][0]["args"]
    return list(json.loads(args[args.index("--logins") + 1]))
