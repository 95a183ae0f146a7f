"""The default storage class, whose parameters cannot change, is replaced under bound claims."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from components.aws.storage.disks import NAME
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from tests.cluster.lived_in.stack import LivedIn
from tests.cluster.waiting import eventually
from tests.rehearsal.day2.stack import AWS

pytestmark = [pytest.mark.timeout(300), pytest.mark.more]
CLASS, VOLUME, CLAIM = ("storage.k8s.io/v1", "StorageClass"), ("v1", "PersistentVolume"), "kept"
KIND = "kubernetes:storage.k8s.io/v1:StorageClass"
_KEY_ID = "11111111-2222-3333-4444-555555555555"


def _key_arn() -> str:
    spec: Any = AWS.spec()
    return f"arn:aws:kms:{spec.region}:{spec.on.account_id}:key/{_KEY_ID}"


def _key() -> dict[str, Any]:
    """A customer's key that EC2 Auto Scaling may use."""
    account = f"arn:aws:iam::{_key_arn().split(':')[4]}"
    role = f"{account}:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
    allowed = {"Effect": "Allow", "Principal": {"AWS": [f"{account}:root", role]}, "Action": "kms:*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [{**allowed, "Resource": "*"}]})
    return {"type": "aws:kms/key:Key", "id": _KEY_ID, "outputs": {"arn": _key_arn(), "policy": policy}}


def _own_key(spec: Any) -> None:
    spec["on"]["disk_key_arn"] = _key_arn()


@pytest.fixture
def bound(lived: LivedIn) -> Iterator[KubernetesApi]:
    """A claim that is bound to a volume, as the driver leaves both."""
    api, room = lived.api, {"storage": "1Gi"}
    common = {"storageClassName": NAME, "accessModes": ["ReadWriteOnce"]}
    of_driver = {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0123456789abcdef0"}}
    volume = {**common, **of_driver, "capacity": room, "persistentVolumeReclaimPolicy": "Delete"}
    claim = {**common, "resources": {"requests": room}, "volumeName": CLAIM}
    api.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": CLAIM}, "spec": volume})
    metadata = {"name": CLAIM, "namespace": "default"}
    api.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim})
    eventually(lambda: _claim(api)["status"].get("phase") == "Bound", "the claim is bound")
    yield api
    api.patch(*VOLUME, CLAIM, {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})  # no driver deletes it
    api.delete("v1", "PersistentVolumeClaim", CLAIM, "default")
    api.delete(*VOLUME, CLAIM)


def _claim(api: KubernetesApi) -> Object:
    return api.get("v1", "PersistentVolumeClaim", CLAIM, "default")


def test_another_key_replaces_the_class_and_leaves_bound_claims(lived: LivedIn, bound: KubernetesApi) -> None:
    before, claim, volume = bound.get(*CLASS, NAME), _claim(bound), bound.get(*VOLUME, CLAIM)
    with pytest.raises(ApiError, match="field is immutable"):
        bound.patch(*CLASS, NAME, {"parameters": {"kmsKeyId": _KEY_ID}})
    lived.rehearsal.seed([_key()])
    steps = [(step.operation, step.type) for step in lived.planned(_own_key)]
    assert ("replace", KIND) in steps
    assert not [kind for _, kind in steps if "PersistentVolume" in kind]
    lived.up(_own_key)
    after = bound.get(*CLASS, NAME)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["parameters"]["kmsKeyId"].endswith(_KEY_ID)
    assert after["parameters"] == {**before["parameters"], "kmsKeyId": after["parameters"]["kmsKeyId"]}
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert [one["metadata"]["name"] for one in bound.list(*CLASS)].count(NAME) == 1
    assert (_claim(bound)["metadata"]["uid"], _claim(bound)["status"]) == (
        claim["metadata"]["uid"],
        claim["status"],
    )
    now = bound.get(*VOLUME, CLAIM)
    assert (now["metadata"]["uid"], now["spec"], now["status"]["phase"]) == (
        volume["metadata"]["uid"],
        volume["spec"],
        "Bound",
    )
