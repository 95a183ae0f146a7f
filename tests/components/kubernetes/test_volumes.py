from collections.abc import Mapping
from typing import Any

import pulumi

from components.kubernetes.volumes import SharedVolume, SharedVolumeArgs
from tests.components.graph import Graph, deploy_graph

LUSTRE: SharedVolumeArgs = {
    "namespace": "trainstack-smoke",
    "claim": "checkpoints",
    "capacity_gib": 1200,
    "source": {
        "driver": "lustre.example.com",
        "handle": "fs-1",
        "attributes": {"mountname": "abc"},
        "mount_options": ["flock"],
    },
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
        "driver": "lustre.example.com",
        "volumeHandle": "fs-1",
        "volumeAttributes": {"mountname": "abc"},
    }
    assert spec["mountOptions"] == ["flock"]
    assert spec["accessModes"] == ["ReadWriteMany"]
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"
    assert spec["claimRef"] == {"namespace": "trainstack-smoke", "name": "checkpoints"}


def test_the_claim_is_bound_to_that_volume_and_to_no_class() -> None:
    made = volume(LUSTRE)
    claim = made.find("PersistentVolumeClaim")
    assert claim["metadata"] == {
        "name": "checkpoints",
        "namespace": "trainstack-smoke",
        "labels": {"trainstack.dev/given": "yes"},
    }
    assert claim["spec"]["volumeName"] == "trainstack-smoke-checkpoints"
    assert claim["spec"]["storageClassName"] == ""
    assert claim["spec"]["resources"] == {"requests": {"storage": "1Gi"}}
    assert made.edges["PersistentVolumeClaim:dev-volume-claim"] >= {"PersistentVolume:dev-volume-volume"}
    assert made.outputs == {"claim": "checkpoints"}
    assert made.delete_before_replace["PersistentVolumeClaim:dev-volume-claim"]


def test_a_file_system_that_grows_replaces_neither_volume_nor_claim() -> None:
    """A volume is not deleted while it is bound."""
    made = volume({**LUSTRE, "capacity_gib": 2400})
    assert made.ignored["PersistentVolume:dev-volume-volume"] == ["spec.capacity"]
    assert made.ignored["PersistentVolumeClaim:dev-volume-claim"] == ["spec.resources"]
    assert made.find("PersistentVolumeClaim")["spec"] == volume(LUSTRE).find("PersistentVolumeClaim")["spec"]
