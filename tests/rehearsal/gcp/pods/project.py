"""A project with one GKE cluster, made by the emulated Google Cloud itself."""

from typing import Any

from rehearsal.accounts import project_number
from rehearsal.core.model import Record
from tests.rehearsal.gcp.harness import Driver

PROJECT = "research"
NUMBER = project_number(PROJECT)
POOL = f"{PROJECT}.svc.id.goog"
PRINCIPAL = f"principal://iam.googleapis.com/projects/{NUMBER}/locations/global/workloadIdentityPools/{POOL}"
MLFLOW = f"{PRINCIPAL}/subject/ns/mlflow/sa/mlflow"
SECRET = f"projects/{NUMBER}/secrets/admin"
TOKEN = "container/cluster:Cluster"


def cluster(google: Driver, **more: Any) -> Record:
    """A regional cluster with workload identity."""
    google.create(
        TOKEN,
        "gke",
        name="gke",
        location="us-central1",
        initialNodeCount=1,
        removeDefaultNodePool=True,
        deletionProtection=False,
        **{"workloadIdentityConfig": {"workloadPool": POOL}, **more},
    )
    return google.state.find(type=f"gcp:{TOKEN}")[0]


def secret(google: Driver, *grants: tuple[str, str], **more: Any) -> None:
    """A secret, and the (role, member) pairs of its own policy."""
    google.create("secretmanager/secret:Secret", "admin", secretId="admin", replication={"auto": {}}, **more)
    for index, (role, member) in enumerate(grants):
        google.create(
            "secretmanager/secretIamMember:SecretIamMember",
            f"grant-{index}",
            secretId=f"projects/{PROJECT}/secrets/admin",
            role=role,
            member=member,
        )
