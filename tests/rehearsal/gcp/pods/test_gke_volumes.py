"""Volumes of pods of a GKE cluster: Managed Lustre, Filestore, and buckets by Cloud Storage FUSE."""

from pathlib import Path
from typing import Any

import pytest

from rehearsal.core.model import InitFailedError
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.pods.jobs import WRITE, bucket, database, run
from tests.rehearsal.gcp.pods.project import MLFLOW, PROJECT
from tests.rehearsal.kubernetes.harness import Rehearsed

VOLUME, CLAIM = "kubernetes:core/v1:PersistentVolume", "kubernetes:core/v1:PersistentVolumeClaim"


def volume(gke: Rehearsed, spec: dict[str, Any], name: str = "data") -> None:
    size = {"storage": "1Ti"}
    gke.create(
        VOLUME,
        {
            "metadata": {"name": name},
            "spec": {"capacity": size, "accessModes": ["ReadWriteMany"], "storageClassName": "", **spec},
        },
        f"pv-{name}",
    )
    gke.create(
        CLAIM,
        {
            "metadata": {"name": name, "namespace": "mlflow"},
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "storageClassName": "",
                "volumeName": name,
                "resources": {"requests": size},
            },
        },
        f"pvc-{name}",
    )


def mounting(gke: Rehearsed, name: str = "j", script: str = WRITE, **more: Any) -> str:
    claimed = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    target = {"TARGET": "/data/x"}
    return run(gke, script, name, env=target, mounts={"data": "/data"}, volumes=claimed, **more)


def lustre(google: Driver, **rule: Any) -> tuple[str, dict[str, Any]]:
    """An instance with a rule for its servers, as (id, source of a volume)."""
    database(google)
    made = google.create(
        "lustre/instance:Instance",
        "fast",
        instanceId="fast",
        location="us-central1-a",
        capacityGib="9000",
        perUnitStorageThroughput="1000",
        filesystem="scratch",
        network="net",
    )
    (peer,) = google.state.find(type="gcp:compute/globalAddress:GlobalAddress")
    ranges = [f"{peer.outputs['address']}/{peer.outputs['prefixLength']}"]
    usual = {"sourceRanges": ranges, "allows": [{"protocol": "tcp", "ports": ["988"]}]}
    google.create("compute/firewall:Firewall", "in", name="in", network="net", **{**usual, **rule})
    source = {
        "driver": "lustre.csi.storage.gke.io",
        "volumeHandle": f"{PROJECT}/us-central1-a/fast",
        "volumeAttributes": {"ip": made["mountPoint"].partition("@")[0], "filesystem": "scratch"},
    }
    return made["id"], source


def test_a_lustre_volume_is_the_instances_folder(google: Driver, gke: Rehearsed) -> None:
    made, source = lustre(google)
    volume(gke, {"csi": source})
    mounting(gke)
    folder = gke.home / "lustre" / made
    assert (folder / "x").read_text() == "{}"
    google.delete("fast")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"volumeHandle": f"{PROJECT}/us-central1-a/other"}, "instances/other does not exist"),
        ({"volumeAttributes": {"ip": "10.0.0.9", "filesystem": "scratch"}}, "volumeAttributes.ip"),
    ],
)
def test_a_lustre_volume_without_an_instance_is_not_mounted(
    google: Driver, gke: Rehearsed, change: dict[str, Any], said: str
) -> None:
    _, source = lustre(google)
    volume(gke, {"csi": {**source, **change}})
    with pytest.raises(InitFailedError) as failed:
        mounting(gke)
    assert any(said in reason for reason in failed.value.reasons), failed.value.reasons


@pytest.mark.parametrize(
    "rule",
    [
        {"sourceRanges": ["10.0.0.0/24"]},
        {"allows": [{"protocol": "tcp", "ports": ["1021-1023"]}]},
        {"allows": [{"protocol": "udp"}]},
    ],
)
def test_lustre_is_not_mounted_where_no_rule_lets_its_servers_in(
    google: Driver, gke: Rehearsed, rule: dict[str, Any]
) -> None:
    _, source = lustre(google, **rule)
    volume(gke, {"csi": source})
    with pytest.raises(InitFailedError) as failed:
        mounting(gke)
    assert any("Is the MGS running" in reason for reason in failed.value.reasons), failed.value.reasons


@pytest.mark.parametrize("kind", ["csi", "nfs"])
def test_a_filestore_volume_is_the_shares_folder(google: Driver, gke: Rehearsed, kind: str) -> None:
    database(google)
    made = google.create(
        "filestore/instance:Instance",
        "homes",
        name="homes",
        location="us-central1-a",
        tier="ZONAL",
        fileShares={"name": "home", "capacityGb": 1024},
        networks=[{"network": "net", "modes": ["MODE_IPV4"]}],
    )
    ip = made["networks"][0]["ipAddresses"][0]
    csi = {
        "driver": "filestore.csi.storage.gke.io",
        "volumeHandle": "modeInstance/us-central1-a/homes/home",
        "volumeAttributes": {"ip": ip, "volume": "home"},
    }
    volume(gke, {"csi": csi} if kind == "csi" else {"nfs": {"server": ip, "path": "/home"}})
    mounting(gke)
    assert (gke.home / "filestore" / made["id"] / "home" / "x").read_text() == "{}"


def test_a_bucket_is_mounted_with_its_sidecar_and_a_right(google: Driver, gke: Rehearsed) -> None:
    bucket(google, "datasets", MLFLOW)
    volume(gke, {"csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeHandle": "datasets"}})
    with pytest.raises(InitFailedError) as failed:
        mounting(gke, "bare")
    assert any("failed to find the sidecar container" in reason for reason in failed.value.reasons)
    mounting(gke, annotations={"gke-gcsfuse/volumes": "true"})
    assert Path(gke.home / "gs" / "datasets" / "x").read_text() == "{}"


LIST = "import os; print(sorted(os.listdir(os.path.dirname(os.environ['TARGET']))))"


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["ro"], ["index"]),
        (["ro", "profile:aiml-training"], ["index"]),
        (["ro", "implicit-dirs"], ["images", "index"]),
    ],
)
def test_folders_without_an_object_are_shown_by_an_option_alone(
    google: Driver, gke: Rehearsed, options: list[str], shown: list[str]
) -> None:
    bucket(google, "datasets", MLFLOW)
    (gke.home / "gs/datasets/images").mkdir(parents=True)
    (gke.home / "gs/datasets/images/1").write_text("")
    (gke.home / "gs/datasets/index").write_text("")
    source = {"driver": "gcsfuse.csi.storage.gke.io", "volumeHandle": "datasets"}
    volume(gke, {"csi": source, "mountOptions": options})
    assert str(shown) in mounting(gke, script=LIST, annotations={"gke-gcsfuse/volumes": "true"})


def test_a_bucket_is_not_mounted_with_a_right_on_a_folder_alone(google: Driver, gke: Rehearsed) -> None:
    bucket(google, "datasets")
    google.create("storage/managedFolder:ManagedFolder", "own", bucket="datasets", name="teams/vision/")
    google.create(
        "storage/managedFolderIamMember:ManagedFolderIamMember",
        "own-reader",
        bucket="datasets",
        managedFolder="teams/vision/",
        role="roles/storage.objectViewer",
        member=MLFLOW,
    )
    source = {"driver": "gcsfuse.csi.storage.gke.io", "volumeHandle": "datasets"}
    volume(gke, {"csi": source, "mountOptions": ["only-dir=teams/vision"]})
    with pytest.raises(InitFailedError) as failed:
        mounting(gke, annotations={"gke-gcsfuse/volumes": "true"})
    assert any("PermissionDenied" in reason for reason in failed.value.reasons)
