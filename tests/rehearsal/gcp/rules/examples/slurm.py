"""For every rule about clusters of Cluster Director: what is accepted, what is refused, and where."""

import copy
from typing import Any

from tests.stacks.stack_files import at

CLUSTER = "hypercomputecluster/cluster:Cluster"
WHOLE: dict[str, Any] = {
    "clusterId": "research",
    "location": "us-central1",
    "networkResources": [
        {"id": "network", "config": {"newNetwork": {"network": "projects/p/global/networks/n"}}}
    ],
    "storageResources": [{"id": "data", "config": {"newBucket": {"bucket": "data"}}}],
    "computeResources": [
        {
            "id": "cpu",
            "config": {"newOnDemandInstances": {"machineType": "n2-standard-4", "zone": "us-central1-a"}},
        }
    ],
    "orchestrator": {
        "slurm": {
            "loginNodes": {
                "count": "1",
                "machineType": "n2-standard-4",
                "zone": "us-central1-a",
                "bootDisk": {"sizeGb": "100", "type": "projects/p/zones/z/diskTypes/pd-balanced"},
                "storageConfigs": [{"id": "data", "localMount": "/data"}],
            },
            "nodeSets": [{"id": "cpu", "computeId": "cpu", "maxDynamicNodeCount": "4"}],
            "partitions": [{"id": "cpu", "nodeSetIds": ["cpu"]}],
        }
    },
}
_SLURM = "orchestrator.slurm"


def cluster(steps: str, value: Any) -> dict[str, Any]:
    """The cluster with one other value."""
    found = copy.deepcopy(WHOLE)
    at(found, steps, value)
    return found


# id -> (type, world, accepted inputs, refused inputs, path of the violation)
EXAMPLES: dict[str, tuple[str, list[Any], dict[str, Any], dict[str, Any], str]] = {
    "GCP-DIRECTOR-001": (CLUSTER, [], WHOLE, cluster("clusterId", "large-slurm"), "clusterId"),
    "GCP-DIRECTOR-002": (
        CLUSTER,
        [],
        WHOLE,
        cluster("computeResources.0.config.newOnDemandInstances.zone", "us-central1-b"),
        "computeResources[0].config.newOnDemandInstances.zone",
    ),
    "GCP-DIRECTOR-003": (
        CLUSTER,
        [],
        WHOLE,
        cluster("orchestrator.slurm.partitions.0.nodeSetIds", ["gpu"]),
        f"{_SLURM}.partitions[0].nodeSetIds[0]",
    ),
    "GCP-DIRECTOR-004": (
        CLUSTER,
        [],
        WHOLE,
        cluster("orchestrator.slurm.defaultPartition", "cpu"),
        f"{_SLURM}.defaultPartition",
    ),
    "GCP-DIRECTOR-005": (
        CLUSTER,
        [],
        WHOLE,
        cluster("orchestrator.slurm.loginNodes.bootDisk.sizeGb", "9"),
        f"{_SLURM}.loginNodes.bootDisk.sizeGb",
    ),
}
