"""For every rule about addresses of pods: what is accepted, what is refused, where, and in which world."""

from typing import Any

from tests.rehearsal.gcp.rules.examples.gke import CLUSTER, NETWORK, POOL, Made
from tests.rehearsal.gcp.rules.examples.pools import UNPROTECTED, pool

NARROW: list[Made] = [
    (NETWORK, "net", {"name": "net", "autoCreateSubnetworks": False}),
    (
        "compute/subnetwork:Subnetwork",
        "sub",
        {
            "name": "sub",
            "network": "net",
            "ipCidrRange": "10.0.0.0/20",
            "secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.64.0.0/22"}],
        },
    ),
    (
        CLUSTER,
        "gke",
        {
            **UNPROTECTED,
            "network": "net",
            "subnetwork": "sub",
            "ipAllocationPolicy": {"clusterSecondaryRangeName": "pods"},
        },
    ),
]


# id -> (type, world, accepted inputs, refused inputs, path of the violation)
EXAMPLES: dict[str, tuple[str, list[Any], dict[str, Any], dict[str, Any], str]] = {
    "GCP-POOL-024": (
        POOL,
        NARROW,
        pool(nodeCount=4, nodeLocations=["us-central1-a"]),
        pool(nodeCount=5, nodeLocations=["us-central1-a"]),
        "maxPodsPerNode",
    ),
    "GCP-POOL-025": (
        POOL,
        NARROW,
        pool(autoscaling={"totalMinNodeCount": 0, "totalMaxNodeCount": 4}),
        pool(autoscaling={"totalMinNodeCount": 0, "totalMaxNodeCount": 5}),
        "autoscaling",
    ),
    "GCP-PLACE-003": (
        "cloudscheduler/job:Job",
        [],
        {"timeZone": "Europe/Berlin", "httpTarget": {"uri": "https://example.com/"}},
        {"timeZone": "Moon/Base", "httpTarget": {"uri": "https://example.com/"}},
        "timeZone",
    ),
    "GCP-RANGE-001": (
        "container/nodePool:NodePool",
        [],
        {"cluster": "gke", "networkConfig": {"podIpv4CidrBlock": "/20"}},
        {"cluster": "gke", "networkConfig": {"podIpv4CidrBlock": "10.0.0.0/40"}},
        "networkConfig.podIpv4CidrBlock",
    ),
}
