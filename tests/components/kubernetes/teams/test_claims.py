"""Volumes of a team's pods, and the creation of its folders."""

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi

from agents.teams import make_folders
from components.kubernetes.teams.claims import TeamClaims, TeamVolumes
from components.kubernetes.teams.folders import SharedFolders
from components.kubernetes.volumes import VolumeArgs
from tests.components.graph import Graph, deploy_graph

LUSTRE: VolumeArgs = {
    "capacity_gib": 1200,
    "source": {"driver": "lustre.example.com", "handle": "fs-1", "mount_options": ["flock"]},
}


def claims(volumes: Mapping[str, VolumeArgs]) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = TeamClaims("dev-vision", {"namespace": "team-vision", "volumes": volumes})
        return {"claims": made.claims}

    return deploy_graph(program)


def folders(*paths: str, read_only: Sequence[str] = ()) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        made = SharedFolders(
            "dev-folders", {"volume": LUSTRE, "folders": paths, "read_only": read_only, "image": "i@sha256:0"}
        )
        return {"folders": made.folders}

    return deploy_graph(program)


def test_there_may_be_as_many_claims_as_are_given_and_no_more() -> None:
    made = claims({"checkpoints": LUSTRE, "home": LUSTRE})
    assert made.find("ResourceQuota")["spec"]["hard"] == {"persistentvolumeclaims": "2"}
    assert made.outputs["claims"] == ["checkpoints", "home"]
    # The quota of before would refuse one more.
    assert "ResourceQuota:dev-vision-quota" in made.edges["PersistentVolumeClaim:dev-vision-home"]
    assert claims({}).find("ResourceQuota")["spec"]["hard"] == {"persistentvolumeclaims": "0"}


def test_volumes_and_claims_keep_what_is_deployed_under_their_names_of_before() -> None:
    """Each pair was a `SharedVolume` in the `TeamClaims`, and its objects had the same names."""

    def program() -> Mapping[str, pulumi.Input[Any]]:
        volumes = {"home": LUSTRE}
        TeamVolumes("a-volumes", {"namespace": "team-a", "volumes": volumes, "claims": "a-claims"})
        return {"claims": TeamClaims("a-claims", {"namespace": "team-a", "volumes": volumes}).claims}

    made = deploy_graph(program)
    kinds = {"PersistentVolume:a-volumes-home": "volume", "PersistentVolumeClaim:a-claims-home": "claim"}
    parent = "trainstack:index:TeamClaims$trainstack:index:SharedVolume::a-claims-home"
    for name, part in kinds.items():
        (alias,) = made.requests[name].aliases
        assert alias.spec.name == f"a-claims-home-{part}"
        assert alias.spec.parentUrn == f"urn:pulumi:dev::trainstack::{parent}"


def test_folders_are_created_by_root_in_a_namespace_of_their_own() -> None:
    made = folders("checkpoints/teams/vision", read_only=["datasets/shared"])
    pod = made.find("Job")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    given = ["--write", "checkpoints/teams/vision", "--read", "datasets/shared"]
    assert container["args"] == ["/volume", *given]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert made.find("Job")["metadata"]["namespace"] == "trainstack-storage"
    assert pod["automountServiceAccountToken"] is False


def test_another_folder_is_another_job() -> None:
    made = [folders("a"), folders("a", "b"), folders("a", read_only=["b"]), folders("a")]
    assert len({each.find("Job")["metadata"]["name"] for each in made}) == 3


def test_a_folder_is_for_all_to_write_to_or_to_read_and_what_is_in_it_stays(tmp_path: Path) -> None:
    make_folders.make(tmp_path, ["checkpoints/teams/vision"], ["datasets/shared"])
    made = tmp_path / "checkpoints" / "teams" / "vision"
    (made / "step-1.pt").touch()
    make_folders.make(tmp_path, ["checkpoints/teams/vision", "checkpoints/teams/research"])
    assert stat.S_IMODE(made.stat().st_mode) == 0o1777
    assert not stat.S_IMODE((tmp_path / "datasets" / "shared").stat().st_mode) & stat.S_IWOTH
    assert (made / "step-1.pt").exists() and (made.parent / "research").is_dir()
