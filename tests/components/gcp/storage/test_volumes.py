"""File systems on Google Cloud as volumes of pods."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from components.gcp.storage.volumes import bucket_source, filestore_source, lustre_source
from components.kubernetes.volumes import VolumeSourceArgs
from tests.components.graph import deploy_graph


def resolved(source: Any) -> Any:
    """A source with every value known; `source` makes it, once there is an engine."""

    def program() -> dict[str, Any]:
        made: VolumeSourceArgs = source()
        return {"source": pulumi.Output.from_input(made)}

    return deploy_graph(program).outputs["source"]


def lustre() -> Any:
    return SimpleNamespace(
        instance=pulumi.Output.from_input("projects/ml/locations/us-central1-a/instances/dev-lustre"),
        address=pulumi.Output.from_input("10.1.2.3"),
        file_system=pulumi.Output.from_input("lustre"),
    )


def homes() -> Any:
    return SimpleNamespace(
        instance=pulumi.Output.from_input("dev-homes-1a2b3c4"),
        address=pulumi.Output.from_input("10.4.5.6"),
        location="us-central1",
    )


def test_lustre_is_mounted_by_address_and_name_with_locks_that_all_nodes_see() -> None:
    assert resolved(lambda: lustre_source(lustre())) == {
        "driver": "lustre.csi.storage.gke.io",
        "handle": "ml/us-central1-a/dev-lustre",
        "attributes": {"ip": "10.1.2.3", "filesystem": "lustre"},
        "mount_options": ["flock"],
    }


def test_a_folder_of_lustre_is_all_that_its_volume_shows() -> None:
    part = resolved(lambda: lustre_source(lustre(), "checkpoints/teams/vision"))
    # The driver mounts `<ip>@tcp:/<filesystem>`.
    assert part["attributes"] == {"ip": "10.1.2.3", "filesystem": "lustre/checkpoints/teams/vision"}
    shared = resolved(lambda: lustre_source(lustre(), "datasets/shared", read_only=True))
    assert shared["mount_options"] == ["flock", "ro"]
    # The driver knows no other attribute but a mount point, and refuses unknown ones.
    assert {*part["attributes"], *shared["attributes"]} == {"ip", "filesystem"}


def test_a_share_of_filestore_is_mounted_by_nfs_4() -> None:
    assert resolved(lambda: filestore_source(homes())) == {
        "driver": "filestore.csi.storage.gke.io",
        "handle": "modeInstance/us-central1/dev-homes-1a2b3c4/homes",
        "attributes": {"ip": "10.4.5.6", "volume": "homes", "fileProtocol": "NFS_V4_1"},
        "mount_options": ["nfsvers=4.1"],
    }
    part = resolved(lambda: filestore_source(homes(), "teams/vision"))
    assert part["attributes"]["volume"] == "homes/teams/vision"


FOLDERS = ("", "teams/vision", "teams/vision-2", "teams/research")


@pytest.mark.parametrize(
    ("source", "slashes"),
    [
        # `<project>/<zone>/<name>`, and the four parts of a share, which the driver counts.
        (lambda folder: lustre_source(lustre(), folder), 2),
        (lambda folder: filestore_source(homes(), folder), 3),
    ],
)
def test_every_folder_has_a_handle_of_its_own_or_a_node_would_show_one_team_anothers(
    source: Callable[[str], VolumeSourceArgs], slashes: int
) -> None:
    handles = [resolved(partial(source, folder))["handle"] for folder in FOLDERS]
    assert len(set(handles)) == len(FOLDERS)
    assert {handle.count("/") for handle in handles} == {slashes}


def test_a_bucket_is_mounted_read_only_by_its_name() -> None:
    source = resolved(lambda: bucket_source("dev-datasets-1a2b3c4"))
    assert (source["driver"], source["handle"]) == ("gcsfuse.csi.storage.gke.io", "dev-datasets-1a2b3c4")
    # Objects have no folders above them; the driver drops a profile that is no StorageClass's.
    assert {"ro", "implicit-dirs"} <= {*source["mount_options"]}
    assert not any(option.startswith("profile") for option in source["mount_options"])
