"""A claim that names no class gets an encrypted disk in its pod's zone."""

from components.aws.storage.disks import AwsDisks
from tests.components.graph import deploy_graph

KEY = "arn:aws:kms:us-east-1:111122223333:alias/aws/ebs"


def test_disks_are_encrypted_and_wait_for_their_pod() -> None:
    made = deploy_graph(lambda: {"name": AwsDisks("dev-disks", {"key_arn": KEY}).storage_class})
    kind = made.find("StorageClass")
    assert kind["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert kind["parameters"] == {"type": "gp3", "encrypted": "true", "kmsKeyId": KEY}
    assert kind["volumeBindingMode"] == "WaitForFirstConsumer" and kind["allowVolumeExpansion"] is True
    assert made.outputs["name"] == "disk"
