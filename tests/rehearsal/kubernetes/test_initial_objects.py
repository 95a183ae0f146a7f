"""Objects that a cluster has without a program: storage classes, default pools, objects of charts."""

import pytest

from rehearsal.core.model import InitFailedError, Properties
from rehearsal.kubernetes import ambient
from rehearsal.kubernetes.api import awaits
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.kubernetes.controllers.nodes import nodes
from tests.rehearsal.kubernetes.harness import DEPLOYMENT, RELEASE, SERVICE, Rehearsed, deployment, kubeconfig

CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"
CLASS = "kubernetes:storage.k8s.io/v1:StorageClass"
WORDPRESS: Properties = {
    "chart": "wordpress", "repositoryOpts": {"repo": "https://charts.bitnami.com/bitnami"}, "name": "blog",
}  # fmt: skip


def claim(name: str = "data", **spec: object) -> Properties:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {**asked, **spec}}


def gke(rehearsed: Rehearsed, location: str = "us-central1-a", **inputs: object) -> KubeCluster:
    others = inputs.get("nodeLocations") or []
    outputs = {
        "name": "g",
        "endpoint": "34.1.2.3",
        "selfLink": f"https://gke/{location}/g",
        "location": location,
    }
    record = rehearsed.state.insert(
        package="gcp", type="gcp:container/cluster:Cluster", scope="project", id=f"{location}/g", urn="",
        name="g", inputs=dict(inputs), outputs={**outputs, "nodeLocations": others},
    )  # fmt: skip
    rehearsed.config["kubeconfig"] = kubeconfig("https://34.1.2.3")
    return KubeCluster(rehearsed.state, record)


def test_a_claim_without_a_class_gets_the_default_of_its_cluster(
    rehearsed: Rehearsed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaits, "_STUCK_S", 0.3)  # the time limit of a claim is fixed
    with pytest.raises(InitFailedError, match="no storage class is set"):  # EKS marks none
        rehearsed.create(CLAIM, claim(), timeout_s=0.3)
    marked = {"storageclass.kubernetes.io/is-default-class": "true"}
    own = {"metadata": {"name": "fast", "annotations": marked}, "provisioner": "ebs.csi.aws.com"}
    rehearsed.create(CLASS, own, "fast")
    assert rehearsed.create(CLAIM, claim("own"), "own")[1]["status"]["phase"] == "Bound"
    gke(rehearsed)
    assert rehearsed.create(CLAIM, claim(), "gke")[1]["status"]["phase"] == "Pending"  # until a pod uses it
    rehearsed.config["kubeconfig"] = ambient.KUBECONFIG
    assert rehearsed.create(CLAIM, claim(), "local")[1]["status"]["phase"] == "Bound"
    with pytest.raises(InitFailedError, match='"gp2" not found'):
        rehearsed.create(CLAIM, claim("aws", storageClassName="gp2"), "aws", timeout_s=0.3)


def test_a_wait_for_nothing_ends_early(rehearsed: Rehearsed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaits, "_STUCK_S", 0.2)
    with pytest.raises(InitFailedError, match="no storage class is set"):
        rehearsed.create(CLAIM, claim(), timeout_s=None)
    pod = {"containers": [{"name": "c", "image": "nginx"}], "nodeSelector": {"disk": "none"}}
    with pytest.raises(InitFailedError, match="didn't match Pod's node affinity/selector"):
        rehearsed.create(DEPLOYMENT, deployment("d", pod, "default"), timeout_s=None)


@pytest.mark.parametrize(
    ("location", "inputs", "count"),
    [
        ("us-central1-a", {"initialNodeCount": 3}, 3),
        ("us-central1-a", {"initialNodeCount": 2, "nodeLocations": ["us-central1-b"]}, 4),
        ("us-central1", {"initialNodeCount": 1, "nodeLocations": ["us-central1-a", "us-central1-b"]}, 2),
        ("us-central1-a", {"initialNodeCount": 1, "removeDefaultNodePool": True}, 0),
        ("us-central1-a", {"nodePools": [{"name": "p", "nodeCount": 2}]}, 2),
        ("us-central1", {"enableAutopilot": True}, 1),
    ],
)
def test_a_gke_cluster_has_the_nodes_that_its_own_arguments_ask_for(
    rehearsed: Rehearsed, location: str, inputs: Properties, count: int
) -> None:
    assert len(nodes(gke(rehearsed, location, **inputs))) == count


def test_load_balancers_have_names_on_aws_and_addresses_elsewhere(rehearsed: Rehearsed) -> None:
    service: Properties = {
        "metadata": {"name": "web"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }  # fmt: skip
    (ingress,) = rehearsed.create(SERVICE, service)[1]["status"]["loadBalancer"]["ingress"]
    assert ingress["hostname"].endswith(".elb.amazonaws.com") and "ip" not in ingress
    gke(rehearsed)
    (ingress,) = rehearsed.create(SERVICE, service, "other")[1]["status"]["loadBalancer"]["ingress"]
    assert ingress["ip"].startswith("203.0.113.") and "hostname" not in ingress


def test_the_services_of_a_chart_can_be_read_and_go_with_it(rehearsed: Rehearsed) -> None:
    values = {"service": {"type": "ClusterIP"}}
    key, outputs = rehearsed.create(RELEASE, {**WORDPRESS, "values": values}, "blog")
    call = rehearsed.call(SERVICE, "got")
    found = rehearsed.cloud.read(call, "default/blog-wordpress", {})
    assert found is not None
    live = found[1]
    assert live["spec"]["type"] == "ClusterIP" and live["spec"]["clusterIP"].startswith("10.")
    rehearsed.cloud.update(rehearsed.call(RELEASE, "blog"), key, outputs, WORDPRESS, preview=False)
    changed = rehearsed.cloud.read(call, "default/blog-wordpress", {})
    assert changed is not None and changed[1]["spec"]["type"] == "LoadBalancer"
    rehearsed.cloud.delete(rehearsed.call(RELEASE, "blog"), key, outputs)
    assert rehearsed.cloud.read(call, "default/blog-wordpress", {}) is None
    rehearsed.create(RELEASE, {**WORDPRESS, "name": "my-wordpress"}, "my")
    assert rehearsed.cloud.read(call, "default/my-wordpress", {}) is not None
