"""File systems on AWS as volumes of pods."""

from types import SimpleNamespace
from typing import Any

import pulumi

from components.aws.storage.volumes import efs_source, lustre_source
from tests.components.recorder import deploy


def test_lustre_is_mounted_by_its_names_with_locks_that_all_nodes_see() -> None:
    system: Any = SimpleNamespace(file_system_id="fs-1", dns_name="fs-1.fsx.local", mount_name="abc")
    assert lustre_source(system) == {
        "driver": "fsx.csi.aws.com",
        "handle": "fs-1",
        "attributes": {"dnsname": "fs-1.fsx.local", "mountname": "abc"},
        "mount_options": ["flock"],
    }
    part = lustre_source(system, "checkpoints/teams/vision")
    _, found = deploy(
        lambda: {
            "mountname": pulumi.Output.from_input(part["attributes"]["mountname"]),
            "handle": pulumi.Output.from_input(part["handle"]),
        }
    )
    assert found["mountname"] == "abc/checkpoints/teams/vision"
    # A pod mounts two folders of one file system only when their volumes have different handles.
    assert found["handle"] == "fs-1::checkpoints/teams/vision"
    assert lustre_source(system, "datasets/shared", read_only=True)["mount_options"] == ["flock", "ro"]


def test_efs_is_mounted_through_an_access_point_encrypted_on_the_way_and_by_name() -> None:
    pointed = efs_source("fs-2", "fsap-3")
    _, found = deploy(lambda: {"handle": pulumi.Output.from_input(pointed["handle"])})
    assert found["handle"] == "fs-2::fsap-3"
    assert pointed["driver"] == "efs.csi.aws.com"
    assert pointed["mount_options"] == ["tls", "iam"]
