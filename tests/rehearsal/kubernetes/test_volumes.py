"""Volumes of pods as local folders."""

import threading
from pathlib import Path

from rehearsal.kubernetes.clusters import resolve
from rehearsal.kubernetes.controllers.volumes import Volumes
from rehearsal.workloads.translate import Pod
from tests.rehearsal.kubernetes.harness import Rehearsed

PVC = "kubernetes:core/v1:PersistentVolumeClaim"
PV = "kubernetes:core/v1:PersistentVolume"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
ASSOCIATION = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"


def lustre_claim(rehearsed: Rehearsed) -> None:
    """A claim on a Lustre file system whose /checkpoints shows a bucket."""
    names = {"dnsName": "fs-1.fsx.eu-central-1.amazonaws.com", "mountName": "abc"}
    rehearsed.aws(LUSTRE, "fs-1", {}, names)
    association = {
        "fileSystemId": "fs-1",
        "fileSystemPath": "/checkpoints",
        "dataRepositoryPath": "s3://lake/runs",
    }
    rehearsed.aws(ASSOCIATION, "dra-1", association, {})
    attributes = {"dnsname": names["dnsName"], "mountname": names["mountName"]}
    csi = {"driver": "fsx.csi.aws.com", "volumeHandle": "fs-1", "volumeAttributes": attributes}
    size = {"capacity": {"storage": "1200Gi"}, "accessModes": ["ReadWriteMany"]}
    rehearsed.create(PV, {"metadata": {"name": "fast"}, "spec": {**size, "csi": csi}}, "fast")
    wanted = {"resources": {"requests": {"storage": "1200Gi"}}, "accessModes": ["ReadWriteMany"]}
    spec = {**wanted, "storageClassName": "", "volumeName": "fast"}
    rehearsed.create(PVC, {"metadata": {"name": "work", "namespace": "lab"}, "spec": spec}, "work")


def test_pods_that_start_together_share_a_linked_lustre_folder(rehearsed: Rehearsed, tmp_path: Path) -> None:
    rehearsed.namespace()
    lustre_claim(rehearsed)
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
