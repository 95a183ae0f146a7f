"""Volumes of pods as local folders."""

import threading
from pathlib import Path

import pytest

from rehearsal.kubernetes.clusters import resolve
from rehearsal.kubernetes.controllers.volumes import Volumes
from rehearsal.workloads.translate import Pod
from rehearsal.workloads.waiting import WaitingError
from tests.rehearsal.kubernetes.harness import Rehearsed

PVC = "kubernetes:core/v1:PersistentVolumeClaim"
PV = "kubernetes:core/v1:PersistentVolume"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
ASSOCIATION = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"


def lustre_claims(rehearsed: Rehearsed, **handles: str) -> None:
    """Claims, by their volumes' handles, on a Lustre file system whose /checkpoints shows a bucket."""
    names = {"dnsName": "fs-1.fsx.eu-central-1.amazonaws.com", "mountName": "abc"}
    rehearsed.aws(LUSTRE, "fs-1", {}, names)
    association = {
        "fileSystemId": "fs-1",
        "fileSystemPath": "/checkpoints",
        "dataRepositoryPath": "s3://lake/runs",
    }
    rehearsed.aws(ASSOCIATION, "dra-1", association, {})
    attributes = {"dnsname": names["dnsName"], "mountname": names["mountName"]}
    size = {"capacity": {"storage": "1200Gi"}, "accessModes": ["ReadWriteMany"]}
    wanted = {"resources": {"requests": {"storage": "1200Gi"}}, "accessModes": ["ReadWriteMany"]}
    for claim, handle in handles.items():
        volume = f"fast-{claim}"
        csi = {"driver": "fsx.csi.aws.com", "volumeHandle": handle, "volumeAttributes": attributes}
        rehearsed.create(PV, {"metadata": {"name": volume}, "spec": {**size, "csi": csi}}, volume)
        spec = {**wanted, "storageClassName": "", "volumeName": volume}
        rehearsed.create(PVC, {"metadata": {"name": claim, "namespace": "lab"}, "spec": spec}, claim)


def mounted(rehearsed: Rehearsed, home: Path, *claims: str) -> None:
    cluster = resolve(rehearsed.state, rehearsed.config)
    assert cluster is not None
    rows = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    container = {"name": "main", "volumeMounts": [{"name": one, "mountPath": f"/{one}"} for one in claims]}
    pod = Pod("lab", "p", "u", "127.64.0.9", {"volumes": rows}, {}, {})
    paths, _ = Volumes(cluster, home, lambda *_: {}).mount(pod, container, home / "pod")
    assert paths.keys() == {f"/{one}" for one in claims}


def test_a_nested_volume_is_reached_through_its_parent(rehearsed: Rehearsed, tmp_path: Path) -> None:
    """A program looks for ~/.mlflow/credentials below the folder that HOME names."""
    rehearsed.namespace()
    login = {"metadata": {"name": "login", "namespace": "lab"}, "data": {"credentials": "bG9naW4="}}
    rehearsed.create("kubernetes:core/v1:Secret", login, "login")
    cluster = resolve(rehearsed.state, rehearsed.config)
    assert cluster is not None
    rows = [{"name": "home", "emptyDir": {}}, {"name": "login", "secret": {"secretName": "login"}}]
    mounts = [{"name": "login", "mountPath": "/tmp/.mlflow"}, {"name": "home", "mountPath": "/tmp"}]
    pod = Pod("lab", "p", "u", "127.64.0.9", {"volumes": rows}, {}, {})
    for _ in range(2):  # a container that starts again finds its volumes as they are
        volumes = Volumes(cluster, tmp_path, lambda *_: {})
        paths, _files = volumes.mount(pod, {"volumeMounts": mounts}, tmp_path / "pod")
        assert (paths["/tmp"] / ".mlflow" / "credentials").read_text() == "login"


def test_a_pod_waits_for_a_second_volume_of_the_same_handle(rehearsed: Rehearsed, tmp_path: Path) -> None:
    rehearsed.namespace()
    lustre_claims(rehearsed, work="fs-1", again="fs-1", other="fs-1::other")
    mounted(rehearsed, tmp_path, "work", "other")
    with pytest.raises(WaitingError, match=r"\[again\].*fast-again.*fast-work"):
        mounted(rehearsed, tmp_path, "work", "again")


def test_pods_that_start_together_share_a_linked_lustre_folder(rehearsed: Rehearsed, tmp_path: Path) -> None:
    rehearsed.namespace()
    lustre_claims(rehearsed, work="fs-1")
    cluster = resolve(rehearsed.state, rehearsed.config)
    assert cluster is not None
    container = {"name": "main", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "work"}}
    problems: list[Exception] = []

    for attempt in range(30):
        home = tmp_path / str(attempt)
        volumes, together = Volumes(cluster, home, lambda *_: {}), threading.Barrier(8)

        def mount(
            index: int, volumes: Volumes = volumes, together: threading.Barrier = together, home: Path = home
        ) -> None:
            pod = Pod("lab", f"p{index}", f"u{index}", "127.64.0.9", {"volumes": [volume]}, {}, {})
            together.wait()
            try:
                paths, _ = volumes.mount(pod, container, home / "pods" / pod.name)
                (paths["/data"] / "checkpoints" / pod.name).write_text("here")
            except Exception as problem:
                problems.append(problem)

        threads = [threading.Thread(target=mount, args=(index,)) for index in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not problems
        assert sorted(path.name for path in (home / "s3/lake/runs").iterdir()) == [f"p{i}" for i in range(8)]


def test_a_claim_that_is_made_again_has_a_new_disk(rehearsed: Rehearsed, tmp_path: Path) -> None:
    rehearsed.namespace()
    cluster = resolve(rehearsed.state, rehearsed.config)
    assert cluster is not None
    volumes = Volumes(cluster, tmp_path, lambda *_: {})
    row = {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}
    pod = Pod("lab", "p", "u", "127.64.0.9", {"volumes": [row]}, {}, {})
    container = {"name": "main", "volumeMounts": [{"name": "disk", "mountPath": "/disk"}]}
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    found: list[Path] = []
    metadata = {"name": "disk", "namespace": "lab", "annotations": {"pulumi.com/skipAwait": "true"}}
    for _ in range(2):
        rehearsed.create(PVC, {"metadata": metadata, "spec": wanted}, "disk")
        found += volumes.mount(pod, container, tmp_path / "pod")[0].values()
        rehearsed.cloud.delete(rehearsed.call(PVC, "disk"), "lab/disk", {})
    assert found[0] != found[1]
