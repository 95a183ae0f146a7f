"""Jobs of pods in a GKE cluster, and what they use."""

from typing import Any

from tests.rehearsal.gcp import private_sql
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.kubernetes.harness import ACCOUNT_KIND, JOB, Rehearsed, job, script_pod

BUCKET, GRANT = "storage/bucket:Bucket", "storage/bucketIAMMember:BucketIAMMember"
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


def database(google: Driver) -> dict[str, Any]:
    return private_sql.database(google, private_sql.private_network(google))
