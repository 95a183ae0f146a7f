"""Homes on a file system that does not make folders by itself."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pulumi

from components.base import Component
from components.kubernetes.network_policies import PlatformNetwork
from components.kubernetes.volumes import VolumeArgs
from stacks.parts import Cluster, SharedFolder, TeamData
from stacks.teams import team_volumes, teams_at_work
from tests.components.graph import Graph, deploy_graph
from tests.stacks.composition.composed import stack_spec


def volume(handle: str) -> VolumeArgs:
    return {
        "capacity_gib": 1024,
        "source": {"driver": "files.example.com", "handle": handle, "mount_options": []},
    }


class Queues(Component):
    """The queues, as far as teams look at them."""

    def __init__(self) -> None:
        super().__init__("queues")
        self.team_namespaces = pulumi.Output.from_input({"Vision": "team-vision"})
        self.spaces = {"team-vision": self}


def vision_alone(spec: Any) -> None:
    spec["teams"] = [team for team in spec["teams"] if team["name"] == "Vision"]


def stack(*, homes: bool, shared: bool) -> Graph:
    """One team at work, with what the cloud has."""

    def program() -> Mapping[str, pulumi.Input[Any]]:
        uri = pulumi.Output.from_input("gs://bucket/teams/vision")
        name = pulumi.Output.from_input("dev")
        own = TeamData(
            checkpoint_uri=uri,
            dataset_uri=uri,
            volumes={"home": volume("homes:teams:vision")},
            people=[],
            folders=["checkpoints/teams/vision"] if shared else [],
            home="teams/vision" if homes else None,
        )
        folder = SharedFolder(volume=volume("lustre"), folder="checkpoints")
        parts: Any = {
            "cluster": Cluster(name, name, pulumi.ResourceOptions(), PlatformNetwork("eks", [])),
            "store": SimpleNamespace(
                checkpoints=folder if shared else None, homes=volume("homes") if homes else None
            ),
            "queueing": Queues(),
            "tracking": SimpleNamespace(image="example.com/python@sha256:0"),
        }
        spec = stack_spec(("medium", "aws"), vision_alone)
        team_volumes(spec, {"Vision": own}, parts["cluster"])
        return {"teams": pulumi.Output.from_input(teams_at_work(spec, {"Vision": own}, **parts))}

    return deploy_graph(program)


def jobs(made: Graph) -> dict[str, list[str]]:
    """The folders that are made, by namespace."""
    return {
        job["metadata"]["namespace"]: job["spec"]["template"]["spec"]["containers"][0]["args"]
        for job in made.all("Job").values()
    }


def test_each_file_system_gets_its_folders_by_a_job_in_a_namespace_of_its_own() -> None:
    assert jobs(stack(homes=True, shared=True)) == {
        "trainstack-storage": ["/volume", "--write", "checkpoints/teams/vision", "--read"],
        "trainstack-homes": ["/volume", "--write", "teams/vision", "--read"],
    }
    assert set(jobs(stack(homes=True, shared=False))) == {"trainstack-homes"}
    assert jobs(stack(homes=False, shared=False)) == {}


def test_a_job_mounts_the_whole_file_system_of_its_folders() -> None:
    made = stack(homes=True, shared=True)
    handles = {
        volume["spec"]["claimRef"]["namespace"]: volume["spec"]["csi"]["volumeHandle"]
        for volume in made.all("PersistentVolume").values()
    }
    assert handles == {
        "trainstack-storage": "lustre",
        "trainstack-homes": "homes",
        "team-vision": "homes:teams:vision",
    }


def test_claims_come_after_the_folders_on_every_file_system() -> None:
    made = stack(homes=True, shared=True)
    # What is in a component is registered once the component is.
    awaited = made.waits_for("TeamClaims:dev-team-vision-claims")
    assert {"Job:dev-folders-job", "Job:dev-home-folders-job"} <= awaited
