from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.kubernetes.volumes import SharedVolume, SharedVolumeArgs
from infra.errors import UserError
from tests.components.graph import Graph, deploy_graph

LUSTRE: SharedVolumeArgs = {
    "namespace": "trainstack-smoke",
    "claim": "checkpoints",
    "capacity_gib": 1200,
    "lustre": {"file_system_id": "fs-1", "dns_name": "fs-1.fsx.local", "mount_name": "abc"},
}


def volume(args: SharedVolumeArgs) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        return {"claim": SharedVolume("dev-volume", args).claim_name}

    return deploy_graph(program)


def test_a_lustre_volume_is_shared_static_and_kept() -> None:
    made = volume(LUSTRE)
    spec = made.find("PersistentVolume")["spec"]
    assert made.find("PersistentVolume")["metadata"]["name"] == "trainstack-smoke-checkpoints"
    assert spec["csi"] == {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": "fs-1",
        "volumeAttributes": {"dnsname": "fs-1.fsx.local", "mountname": "abc"},
    }
    assert spec["mountOptions"] == ["flock"]
    assert spec["accessModes"] == ["ReadWriteMany"]
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"
    assert spec["claimRef"] == {"namespace": "trainstack-smoke", "name": "checkpoints"}


def test_the_claim_is_bound_to_that_volume_and_to_no_class() -> None:
    made = volume(LUSTRE)
    claim = made.find("PersistentVolumeClaim")
    assert claim["metadata"] == {"name": "checkpoints", "namespace": "trainstack-smoke"}
    assert claim["spec"]["volumeName"] == "trainstack-smoke-checkpoints"
    assert claim["spec"]["storageClassName"] == ""
    assert claim["spec"]["resources"] == {"requests": {"storage": "1200Gi"}}
    assert made.edges["PersistentVolumeClaim:dev-volume-claim"] >= {"PersistentVolume:dev-volume-volume"}
    assert made.outputs == {"claim": "checkpoints"}
    assert made.delete_before_replace["PersistentVolumeClaim:dev-volume-claim"]


def test_an_efs_volume_is_encrypted_on_the_way_and_may_use_an_access_point() -> None:
    args: SharedVolumeArgs = {
        "namespace": "team-a",
        "claim": "homes",
        "capacity_gib": 100,
        "efs": {"file_system_id": "fs-2", "access_point_id": "fsap-3"},
    }
    spec = volume(args).find("PersistentVolume")["spec"]
    assert spec["csi"] == {"driver": "efs.csi.aws.com", "volumeHandle": "fs-2::fsap-3"}
    assert spec["mountOptions"] == ["tls"]


def test_exactly_one_file_system() -> None:
    none: SharedVolumeArgs = {"namespace": "a", "claim": "b", "capacity_gib": 1}
    both: SharedVolumeArgs = {**LUSTRE, "efs": {"file_system_id": "fs-2"}}
    for args in (none, both):
        with pytest.raises(UserError):
            volume(args)
