"""The nodes of a GKE cluster: labels, taints, GPUs and sizes as GKE gives them to node pools."""

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.kubernetes.controllers.nodes import may_grow, nodes
from rehearsal.workloads.scheduling import SchedulerNode
from tests.rehearsal.gcp.harness import Driver
from tests.rehearsal.gcp.pods.project import cluster
from tests.rehearsal.kubernetes.harness import Rehearsed

POOL = "container/nodePool:NodePool"
GPU = "nvidia.com/gpu"


def pool(google: Driver, config: dict[str, Any], **more: Any) -> list[SchedulerNode]:
    made = google.state.find(type="gcp:container/cluster:Cluster") or [cluster(google)]
    google.create(POOL, "p", cluster=made[0].id, name="p", nodeConfig=config, **more)
    return nodes(KubeCluster(google.state, made[0]))


def reserved(machine: str, **more: Any) -> dict[str, Any]:
    return {
        "machineType": machine,
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
        **more,
    }


def test_a_gpu_node_is_labelled_and_tainted_by_gke(google: Driver) -> None:
    config = {
        "machineType": "a3-megagpu-8g",
        "labels": {"team": "vision"},
        "guestAccelerators": [
            {
                "type": "nvidia-h100-mega-80gb",
                "count": 8,
                "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"},
            }
        ],
    }
    first, second = pool(google, config, nodeLocations=["us-central1-a"], nodeCount=2)
    assert (
        first.labels.items()
        >= {
            "cloud.google.com/gke-nodepool": "p",
            "cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb",
            "cloud.google.com/gke-gpu-driver-version": "latest",
            "node.kubernetes.io/instance-type": "a3-megagpu-8g",
            "topology.kubernetes.io/zone": "us-central1-a",
            "topology.kubernetes.io/region": "us-central1",
            "kubernetes.io/arch": "amd64",
            "team": "vision",
        }.items()
    )
    assert [str(taint) for taint in first.taints] == ["{nvidia.com/gpu: present}"]
    assert first.extended == {GPU: 8} and first.running
    block = "cloud.google.com/gce-topology-block"
    assert first.labels[block] == second.labels[block]
    host = "cloud.google.com/gce-topology-host"
    assert first.labels[host] != second.labels[host]
    assert first.capacity["cpu"] == 208 and first.capacity["memory"] > Decimal(10**12)


def test_built_in_gpus_count(google: Driver) -> None:
    (node,) = pool(google, {"machineType": "g2-standard-24"}, nodeLocations=["us-central1-a"], nodeCount=1)
    assert node.extended == {GPU: 2}
    assert node.labels["cloud.google.com/gke-accelerator"] == "nvidia-l4"


def test_counts_are_per_zone_unless_total(google: Driver) -> None:
    zones = ["us-central1-a", "us-central1-b"]
    found = pool(google, {"machineType": "e2-standard-4"}, nodeLocations=zones, nodeCount=2)
    assert Counter(one.labels["topology.kubernetes.io/zone"] for one in found) == dict.fromkeys(zones, 2)
    assert all(one.running for one in found) and not any(one.taints for one in found)
    google.delete("p")
    total = {"totalMinNodeCount": 1, "totalMaxNodeCount": 3}
    found = pool(google, {"machineType": "e2-standard-4"}, nodeLocations=zones, autoscaling=total)
    assert [one.running for one in found] == [True, False, False]
    google.delete("p")
    each = {"minNodeCount": 0, "maxNodeCount": 3}
    found = pool(google, {"machineType": "e2-standard-4"}, nodeLocations=zones, autoscaling=each)
    assert [one.running for one in found] == [False] * 6


def test_gkes_own_autoscaler_adds_nodes(google: Driver) -> None:
    assert may_grow(KubeCluster(google.state, cluster(google)))


@pytest.mark.parametrize(
    ("gpus", "count", "label"),
    [
        (
            {"gpuSharingConfig": {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": 4}},
            4,
            ("cloud.google.com/gke-gpu-sharing-strategy", "time-sharing"),
        ),
        ({"gpuPartitionSize": "1g.5gb"}, 7, ("cloud.google.com/gke-gpu-partition-size", "1g.5gb")),
        (
            {"gpuDriverInstallationConfig": {"gpuDriverVersion": "INSTALLATION_DISABLED"}},
            0,
            ("cloud.google.com/gke-accelerator", "nvidia-tesla-a100"),
        ),
    ],
)
def test_shared_gpus_and_those_without_a_driver(
    google: Driver, gpus: dict[str, Any], count: int, label: tuple[str, str]
) -> None:
    config = {
        "machineType": "a2-highgpu-1g",
        "guestAccelerators": [{"type": "nvidia-tesla-a100", "count": 1, **gpus}],
    }
    (node,) = pool(google, config, nodeLocations=["us-central1-a"], nodeCount=1)
    assert node.extended == {GPU: count}
    assert label in node.labels.items()


def test_labels_show_the_purchase_option(google: Driver) -> None:
    zone = {"nodeLocations": ["us-central1-a"]}
    (spot,) = pool(google, {"machineType": "e2-standard-4", "spot": True}, nodeCount=1, **zone)
    assert spot.labels["cloud.google.com/gke-spot"] == "true"
    google.delete("p")
    queued = pool(
        google,
        reserved("a3-highgpu-8g", flexStart=True),
        queuedProvisioning={"enabled": True},
        management={"autoRepair": False, "autoUpgrade": False},
        autoscaling={"totalMinNodeCount": 0, "totalMaxNodeCount": 1},
        **zone,
    )
    assert queued[0].labels["cloud.google.com/gke-flex-start"] == "true"
    assert {taint.key for taint in queued[0].taints} == {GPU, "cloud.google.com/gke-queued"}


def test_arm_nodes_keep_other_pods_off(google: Driver) -> None:
    reserved = {"consumeReservationType": "ANY_RESERVATION"}
    node_config = {"machineType": "a4x-highgpu-4g", "reservationAffinity": reserved}
    (node,) = pool(google, node_config, nodeLocations=["us-central1-a"], nodeCount=1)
    assert node.labels["kubernetes.io/arch"] == "arm64"
    assert {taint.key for taint in node.taints} == {GPU, "kubernetes.io/arch"}


def test_a_taint_of_the_program_is_not_doubled(google: Driver) -> None:
    own = [{"key": GPU, "value": "present", "effect": "NO_SCHEDULE"}]
    (node,) = pool(
        google,
        {"machineType": "g2-standard-12", "taints": own},
        nodeLocations=["us-central1-a"],
        nodeCount=1,
    )
    assert len(node.taints) == 1


def test_a_node_has_a_device_for_each_network_object_of_its_networks(gke: Rehearsed, google: Driver) -> None:
    """A pod that asks for a network which no object names stays unscheduled."""
    attached = [{"network": name, "subnetwork": name} for name in ("vpc1", "vpc2")]
    for index, name in enumerate(("vpc1", "vpc2")):
        google.create("compute/network:Network", name, name=name, autoCreateSubnetworks=False)
        subnetwork: dict[str, Any] = {
            "network": name,
            "region": "us-central1",
            "ipCidrRange": f"10.{index}.0.0/20",
        }
        google.create("compute/subnetwork:Subnetwork", f"{name}-nodes", name=name, **subnetwork)
    google.create(
        POOL,
        "p",
        cluster="gke",
        name="p",
        nodeLocations=["us-central1-a"],
        nodeCount=1,
        nodeConfig=reserved("a3-highgpu-8g"),
        networkConfig={"additionalNodeNetworkConfigs": attached},
    )
    api = "kubernetes:networking.gke.io/v1:"
    gke.create(
        f"{api}GKENetworkParamSet",
        {
            "metadata": {"name": "fast"},
            "spec": {"vpc": "vpc1", "vpcSubnet": "vpc1", "deviceMode": "NetDevice"},
        },
        "parameters",
    )
    reference = {"group": "networking.gke.io", "kind": "GKENetworkParamSet", "name": "fast"}
    network = {"metadata": {"name": "fast"}, "spec": {"type": "Device", "parametersRef": reference}}
    gke.create(f"{api}Network", network, "fast")
    (made,) = google.state.find(type="gcp:container/cluster:Cluster")
    found = {node.group: node.extended for node in nodes(KubeCluster(google.state, made))}
    devices = {name: count for name, count in found["p"].items() if name.startswith("networking.gke.io")}
    assert devices == {"networking.gke.io.networks/fast": 1, "networking.gke.io.networks/fast.IP": 1}
    assert not [name for name in found["system"] if name.startswith("networking.gke.io")]
