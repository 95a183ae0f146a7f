"""A claim that names no class gets an encrypted disk in its pod's zone."""

from components.aws.storage.disks import AwsDisks
from tests.components.graph import deploy_graph


def test_disks_are_encrypted_and_wait_for_their_pod() -> None:
    made = deploy_graph(lambda: {"name": AwsDisks("dev-disks").storage_class})
    kind = made.find("StorageClass")
    assert kind["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert kind["parameters"] == {"type": "gp3", "encrypted": "true"}
    assert kind["volumeBindingMode"] == "WaitForFirstConsumer" and kind["allowVolumeExpansion"] is True
    assert made.outputs["name"] == "disk"
