"""A rehearsal with a GKE cluster whose pods run."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.core.schema import Schemas
from rehearsal.kubernetes.api import awaits
from rehearsal.kubernetes.cloud import KubernetesCloud
from tests.rehearsal.driver import CACHE
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.pods.project import cluster
from tests.rehearsal.kubernetes.harness import Rehearsed


@pytest.fixture(scope="session")
def kinds() -> Iterator[Schemas]:
    found = Schemas("kubernetes", CACHE)
    yield found
    found.close()


def kubeconfig(server: str) -> str:
    """As components make it for GKE: no secret, a login by the exec plugin."""
    login = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "gke-gcloud-auth-plugin",
        "args": ["--use_application_default_credentials"],
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "gke",
            "contexts": [{"name": "gke", "context": {"cluster": "gke", "user": "gke"}}],
            "clusters": [{"name": "gke", "cluster": {"server": server}}],
            "users": [{"name": "gke", "user": {"exec": {**login, "provideClusterInfo": True}}}],
        }
    )


@pytest.fixture
def gke(
    google: Driver, tmp_path: Path, kinds: Schemas, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rehearsed]:
    """Kubernetes of the cluster `gke` in the network `clusters`, with one pool of two nodes."""
    monkeypatch.setattr(awaits, "_STUCK_S", 1.0)
    google.create("compute/network:Network", "clusters", name="clusters", autoCreateSubnetworks=False)
    several = {"enableMultiNetworking": True, "datapathProvider": "ADVANCED_DATAPATH"}
    made = cluster(google, network="clusters", **several)
    google.create(
        "container/nodePool:NodePool",
        "system",
        cluster=made.id,
        name="system",
        nodeLocations=["us-central1-a"],
        nodeCount=2,
        nodeConfig={"machineType": "e2-standard-4"},
    )
    cloud = KubernetesCloud(google.state, kinds, tmp_path)
    config = {"kubeconfig": kubeconfig(f"https://{made.outputs['endpoint']}")}
    rehearsed = Rehearsed(google.state, tmp_path, cloud, config)
    rehearsed.namespace("mlflow")
    yield rehearsed
    rehearsed.cloud.stop()
    assert not rehearsed.processes()
