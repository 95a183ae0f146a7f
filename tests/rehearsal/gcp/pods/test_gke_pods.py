"""Pods of a GKE cluster: identity, secrets, buckets, databases and volumes, all of it local."""

from pathlib import Path
from typing import Any

import pytest

from rehearsal.client import Rehearsal
from rehearsal.core.model import InitFailedError, RefusalError
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.pods.project import MLFLOW, PRINCIPAL, PROJECT, SECRET, secret
from tests.rehearsal.kubernetes.harness import ACCOUNT_KIND, JOB, Rehearsed, job, script_pod

BUCKET, GRANT = "storage/bucket:Bucket", "storage/bucketIAMMember:BucketIAMMember"
VOLUME, CLAIM = "kubernetes:core/v1:PersistentVolume", "kubernetes:core/v1:PersistentVolumeClaim"
# What the program of the tracking pods does: a token of the metadata server, and a REST call with it.
SECRETS = """
import base64, json, os, urllib.request

def get(url, headers, body=None):
    data = None if body is None else json.dumps(body).encode()
    return json.loads(urllib.request.urlopen(urllib.request.Request(url, data, headers)).read())

root = f"http://{os.environ['GCE_METADATA_HOST']}/computeMetadata/v1/instance/service-accounts/default"
token = get(f"{root}/token", {"Metadata-Flavor": "Google"})["access_token"]
api = os.environ["CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"] + "v1/" + os.environ["SECRET"]
login = {"Authorization": f"Bearer {token}"}
value = base64.b64encode(json.dumps({"username": "admin", "password": "p"}).encode()).decode()
get(f"{api}:addVersion", login, {"payload": {"data": value}})
found = get(f"{api}/versions/latest:access", login)
print("read", base64.b64decode(found["payload"]["data"]).decode())
print(sorted(name for name in os.environ if name.startswith("AWS_")))
"""
WRITE = """
import os, pathlib, urllib.parse
target = pathlib.Path(urllib.parse.urlsplit(os.environ["TARGET"]).path)
target.parent.mkdir(parents=True, exist_ok=True)
target.write_text("{}")
print(os.environ.get("DATABASE"))
"""


def run(gke: Rehearsed, script: str, name: str = "j", **spec: Any) -> str:
    """The log of a Job of the service account `mlflow`; raises InitFailedError when it fails."""
    if not gke.state.find(type=ACCOUNT_KIND):
        gke.create(ACCOUNT_KIND, {"metadata": {"name": "mlflow", "namespace": "mlflow"}}, "sa")
    env = [{"name": key, "value": value} for key, value in spec.pop("env", {}).items()]
    mounts = spec.pop("mounts", {})
    volumes = spec.pop("volumes", [])
    annotations = spec.pop("annotations", {})
    gke.config_map(name, {"main.py": script}, "mlflow")
    pod = script_pod(name, container={"env": env}, serviceAccountName="mlflow", **spec)
    pod["volumes"] += volumes
    pod["containers"][0]["volumeMounts"] += [
        {"name": volume, "mountPath": path} for volume, path in mounts.items()
    ]
    made = job(name, pod, "mlflow")
    made["spec"]["template"]["metadata"] = {"annotations": annotations}
    gke.create(JOB, made, name, timeout_s=15)
    return next((gke.home / "logs" / "mlflow").glob(f"{name}-*.log")).read_text()


def bucket(google: Driver, name: str, *members: str, role: str = "roles/storage.objectUser") -> None:
    google.create(BUCKET, name, name=name, location="us-central1", uniformBucketLevelAccess=True)
    for index, member in enumerate(members):
        google.create(GRANT, f"{name}-{index}", bucket=name, role=role, member=member)


def test_a_pod_reads_its_secret_by_its_own_principal(google: Driver, gke: Rehearsed) -> None:
    secret(
        google,
        ("roles/secretmanager.secretAccessor", MLFLOW),
        ("roles/secretmanager.secretVersionAdder", MLFLOW),
    )
    log = run(gke, SECRETS, env={"SECRET": SECRET})
    assert 'read {"username": "admin", "password": "p"}' in log
    assert "['AWS_EC2_METADATA_DISABLED']" in log
    named = f"projects/{PROJECT}/secrets/admin"
    assert Rehearsal(gke.home).secret(named) == {"username": "admin", "password": "p"}


def test_a_pod_without_a_grant_reads_nothing(google: Driver, gke: Rehearsed) -> None:
    secret(google, ("roles/secretmanager.secretAccessor", f"{PRINCIPAL}/subject/ns/mlflow/sa/other"))
    with pytest.raises(InitFailedError):
        run(gke, SECRETS, env={"SECRET": SECRET})
    assert "HTTP Error 403" in next((gke.home / "logs" / "mlflow").glob("j-*.log")).read_text()


def test_what_a_pod_writes_to_a_bucket_lies_on_this_disk(google: Driver, gke: Rehearsed) -> None:
    bucket(google, "artifacts", MLFLOW)
    run(gke, WRITE, env={"TARGET": "gs://artifacts/runs/1/result.json"})
    home = Rehearsal(gke.home)
    assert home.local_path("gs://artifacts/runs/1/result.json").read_text() == "{}"
    with pytest.raises(RefusalError, match=r"conflict: .*holds runs/1/result\.json"):
        for name in ("artifacts-0", "artifacts"):
            google.delete(name)


@pytest.mark.parametrize(
    ("members", "role"),
    [
        ((), "roles/storage.objectUser"),
        ((f"{PRINCIPAL}/subject/ns/mlflow/sa/other",), "roles/storage.objectUser"),
        ((MLFLOW,), "roles/pubsub.publisher"),
    ],
)
def test_a_pod_without_a_right_on_a_bucket_fails_where_it_uses_it(
    google: Driver, gke: Rehearsed, members: tuple[str, ...], role: str
) -> None:
    bucket(google, "artifacts", *members, role=role)
    with pytest.raises(InitFailedError):
        run(gke, WRITE, env={"TARGET": "gs://artifacts/runs/1/result.json"})
    log = next((gke.home / "logs" / "mlflow").glob("j-*.log")).read_text()
    assert "403-no-permission-storage.objects-on-gs-artifacts" in log
    assert "unused" in run(gke, "print('unused')", "k", env={"TARGET": "gs://artifacts/x"})


def test_a_missing_bucket_is_reported(gke: Rehearsed) -> None:
    with pytest.raises(InitFailedError) as failed:
        run(gke, WRITE, env={"TARGET": "gs://artefacts/x"})
    assert any("'artefacts'" in reason for reason in failed.value.reasons)


def database(google: Driver) -> dict[str, Any]:
    link = google.create("compute/network:Network", "net", name="net", autoCreateSubnetworks=False)["id"]
    google.create(
        "compute/globalAddress:GlobalAddress",
        "peer",
        name="peer",
        purpose="VPC_PEERING",
        addressType="INTERNAL",
        prefixLength=20,
        network=link,
    )
    google.create(
        "servicenetworking/connection:Connection",
        "psa",
        network=link,
        service="servicenetworking.googleapis.com",
        reservedPeeringRanges=["peer"],
    )
    return google.create(
        "sql/databaseInstance:DatabaseInstance",
        "db",
        name="tracking",
        databaseVersion="POSTGRES_16",
        deletionProtection=False,
        settings={
            "tier": "db-custom-2-7680",
            "edition": "ENTERPRISE",
            "ipConfiguration": {"ipv4Enabled": False, "privateNetwork": link},
        },
    )


def test_the_cloud_sql_address_leads_to_a_local_database(google: Driver, gke: Rehearsed) -> None:
    bucket(google, "artifacts", MLFLOW)
    address = database(google)["privateIpAddress"]
    uri = f"postgresql+psycopg2://mlflow@{address}:5432/mlflow?sslmode=require"
    log = run(gke, WRITE, env={"TARGET": "gs://artifacts/x", "DATABASE": uri})
    local = gke.home / "databases" / "tracking"
    assert f"sqlite:///{local / 'mlflow.db'}" in log and local.is_dir()
    google.delete("db")
    assert not local.exists()


def test_the_auth_proxy_of_a_pod_leads_to_its_instance(google: Driver, gke: Rehearsed) -> None:
    bucket(google, "artifacts", MLFLOW)
    connection = database(google)["connectionName"]
    env = {"TARGET": "gs://artifacts/x", "DATABASE": "postgresql://mlflow@127.0.0.1:5432/mlflow"}
    assert "postgresql://mlflow@127.0.0.1" in run(gke, WRITE, "without", env=env)
    proxy = {
        "name": "proxy",
        "image": "gcr.io/cloud-sql-connectors/cloud-sql-proxy:2",
        "args": ["--private-ip", connection],
        "restartPolicy": "Always",
    }
    assert "sqlite:///" in run(gke, WRITE, "with", env=env, initContainers=[proxy])


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


def mounting(gke: Rehearsed, name: str = "j", **more: Any) -> str:
    claimed = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return run(gke, WRITE, name, env={"TARGET": "/data/x"}, mounts={"data": "/data"}, volumes=claimed, **more)


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


def test_an_annotation_without_effect_in_iam_is_reported(google: Driver, gke: Rehearsed) -> None:
    google.create("serviceaccount/account:Account", "trainer", accountId="trainer")
    email = f"trainer@{PROJECT}.iam.gserviceaccount.com"
    metadata = {
        "name": "train",
        "namespace": "mlflow",
        "annotations": {"iam.gke.io/gcp-service-account": email},
    }
    gke.create(ACCOUNT_KIND, {"metadata": metadata}, "train")
    (said,) = [text for severity, text in gke.log if severity == "warning"]
    assert "iam.serviceAccounts.getAccessToken" in said and "roles/iam.workloadIdentityUser" in said
