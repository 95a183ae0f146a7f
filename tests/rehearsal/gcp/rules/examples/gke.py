"""For every rule about GKE clusters: what is accepted, what is refused, where, and in which world."""

from typing import Any

CLUSTER, POOL = "container/cluster:Cluster", "container/nodePool:NodePool"


NETWORK, SUBNETWORK = "compute/network:Network", "compute/subnetwork:Subnetwork"


Made = tuple[str, str, dict[str, Any]]


SPACE: list[Made] = [
    (NETWORK, "net", {"name": "net", "autoCreateSubnetworks": False}),
    (
        SUBNETWORK,
        "sub",
        {
            "name": "sub",
            "network": "net",
            "ipCidrRange": "10.0.0.0/20",
            "secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.64.0.0/14"}],
        },
    ),
]


V2 = {"datapathProvider": "ADVANCED_DATAPATH"}


def cluster(**more: Any) -> dict[str, Any]:
    return {"initialNodeCount": 1, **more}


def observed(**more: Any) -> dict[str, Any]:
    return {"monitoringConfig": {"advancedDatapathObservabilityConfig": {"enableMetrics": True, **more}}}


# id -> (type, world, accepted inputs, refused inputs, path of the violation)
EXAMPLES: dict[str, tuple[str, list[Any], dict[str, Any], dict[str, Any], str]] = {
    "GCP-GKE-002": (
        CLUSTER,
        [],
        cluster(enableMultiNetworking=True, **V2),
        cluster(enableMultiNetworking=True),
        "datapathProvider",
    ),
    "GCP-GKE-003": (
        CLUSTER,
        [],
        cluster(networkPolicy={"enabled": True}),
        cluster(networkPolicy={"enabled": True}, **V2),
        "networkPolicy.enabled",
    ),
    "GCP-GKE-030": (
        CLUSTER,
        [],
        cluster(enableMultiNetworking=True, **V2, **observed(enableRelay=False)),
        cluster(enableMultiNetworking=True, **V2, **observed(enableRelay=True)),
        "monitoringConfig.advancedDatapathObservabilityConfig.enableRelay",
    ),
    "GCP-GKE-004": (
        CLUSTER,
        [],
        cluster(enableFqdnNetworkPolicy=True, **V2),
        cluster(enableFqdnNetworkPolicy=True),
        "enableFqdnNetworkPolicy",
    ),
    "GCP-GKE-006": (
        CLUSTER,
        SPACE,
        cluster(network="net", privateClusterConfig={"masterIpv4CidrBlock": "172.16.0.0/28"}),
        cluster(network="net", privateClusterConfig={"masterIpv4CidrBlock": "10.0.1.0/28"}),
        "privateClusterConfig.masterIpv4CidrBlock",
    ),
    "GCP-GKE-009": (
        CLUSTER,
        SPACE,
        cluster(subnetwork="sub", ipAllocationPolicy={"clusterSecondaryRangeName": "pods"}),
        cluster(subnetwork="sub", ipAllocationPolicy={"clusterSecondaryRangeName": "pots"}),
        "ipAllocationPolicy.clusterSecondaryRangeName",
    ),
    "GCP-GKE-010": (
        CLUSTER,
        [],
        cluster(workloadIdentityConfig={"workloadPool": "research.svc.id.goog"}),
        cluster(workloadIdentityConfig={"workloadPool": "other.svc.id.goog"}),
        "workloadIdentityConfig.workloadPool",
    ),
    "GCP-GKE-011": (
        CLUSTER,
        [],
        cluster(removeDefaultNodePool=True),
        {"removeDefaultNodePool": True},
        "initialNodeCount",
    ),
    "GCP-GKE-013": (
        CLUSTER,
        [],
        cluster(defaultMaxPodsPerNode=32, networkingMode="VPC_NATIVE"),
        cluster(defaultMaxPodsPerNode=32, networkingMode="ROUTES"),
        "defaultMaxPodsPerNode",
    ),
    "GCP-GKE-014": (
        CLUSTER,
        [],
        cluster(location="us-central1", nodeLocations=["us-central1-a"]),
        cluster(location="us-central1", nodeLocations=["us-east1-b"]),
        "nodeLocations[0]",
    ),
    "GCP-GKE-015": (
        CLUSTER,
        [],
        cluster(
            clusterAutoscaling={
                "enabled": True,
                "resourceLimits": [{"resourceType": "cpu"}, {"resourceType": "memory"}],
            }
        ),
        cluster(clusterAutoscaling={"enabled": True, "resourceLimits": [{"resourceType": "cpu"}]}),
        "clusterAutoscaling.resourceLimits",
    ),
}
