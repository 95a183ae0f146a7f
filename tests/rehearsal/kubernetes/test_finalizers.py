"""Deletes wait for finalizers as long as another delete, which may end the use, is in progress."""

import threading
import time

import pytest

from rehearsal.core.model import RefusalError
from tests.rehearsal.kubernetes.harness import DEPLOYMENT, NAMESPACE, Rehearsed, deployment, script_pod

CLAIM, VOLUME = "kubernetes:core/v1:PersistentVolumeClaim", "kubernetes:core/v1:PersistentVolume"
# It takes its time to end.
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(3), exit(0)))
while True: time.sleep(0.1)
"""


@pytest.fixture(autouse=True)
def _used(rehearsed: Rehearsed) -> None:
    rehearsed.namespace()
    size = {"storage": "1Gi"}
    modes = {"accessModes": ["ReadWriteMany"]}
    disk = {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1"}
    volume = {"metadata": {"name": "v"}, "spec": {**modes, "capacity": size, "csi": disk}}
    rehearsed.create(VOLUME, volume, "v")
    spec = {**modes, "resources": {"requests": size}, "volumeName": "v", "storageClassName": ""}
    rehearsed.create(CLAIM, {"metadata": {"name": "c", "namespace": "lab"}, "spec": spec}, "c")
    rehearsed.config_map("stubborn", {"main.py": STUBBORN})
    pod = script_pod("stubborn")
    pod["volumes"].append({"name": "data", "persistentVolumeClaim": {"claimName": "c"}})
    rehearsed.create(DEPLOYMENT, deployment("user", pod), "user")


def test_a_claim_goes_when_the_deployment_beside_it_is_gone(rehearsed: Rehearsed) -> None:
    ends: dict[str, float] = {}

    def delete(token: str, id: str) -> None:
        rehearsed.cloud.delete(rehearsed.call(token, id.rpartition("/")[2]), id, {})
        ends[id] = time.monotonic()

    orders = ((VOLUME, "v"), (CLAIM, "lab/c"), (DEPLOYMENT, "lab/user"))
    threads = [threading.Thread(target=delete, args=order) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(ends, key=ends.__getitem__) == ["lab/user", "lab/c", "v"]


def test_a_claim_in_use_is_reported_with_its_user(rehearsed: Rehearsed) -> None:
    said = "timed out waiting for the condition: .*pvc-protection stays while Deployment lab/user"
    with pytest.raises(RefusalError, match=said):
        rehearsed.cloud.delete(rehearsed.call(CLAIM, "c"), "lab/c", {})
    rehearsed.cloud.delete(rehearsed.call(NAMESPACE, "lab"), "lab", {})
    rehearsed.cloud.delete(rehearsed.call(VOLUME, "v"), "v", {})
    assert rehearsed.state.count("kubernetes") == 0
