"""Examples of the rules GPU."""

from typing import Any

from tests.policies.recording.bases import CLUSTER, NODE_GROUP, NODE_ROLE
from tests.policies.recording.example import DROP, Example, Made

_EKS = {**CLUSTER, **NODE_ROLE}
_POOL = NODE_GROUP.but(
    instanceTypes=["g6.2xlarge"],
    amiType="AL2023_x86_64_NVIDIA",
    labels={"pool": "l4"},
    taints=[{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
    nodeRepairConfig={"enabled": True},
)
_SYSTEM = _POOL.but(
    instanceTypes=["m6i.xlarge"],
    amiType="AL2023_x86_64_STANDARD",
    scalingConfig={"minSize": 2, "desiredSize": 2, "maxSize": 4},
    labels={"pool": "system"},
    taints=DROP,
)
_AUTOSCALER = Made(
    "kubernetes:helm.sh/v3:Release",
    {
        "chart": "cluster-autoscaler",
        "version": "9.59.0",
        "namespace": "kube-system",
        "repositoryOpts": {"repo": "https://kubernetes.github.io/autoscaler"},
    },
)
_BUCKET = Made("aws:s3/bucket:Bucket", {"bucket": "train-checkpoints"})


def eks(**pools: Made) -> dict[str, Made]:
    """A cluster in us-east-1, and what else an example needs."""
    return {**_EKS, **pools}


_GKE = {
    "net": Made("gcp:compute/network:Network", {"name": "net", "autoCreateSubnetworks": False}),
    "sub": Made(
        "gcp:compute/subnetwork:Subnetwork",
        {"name": "sub", "network": "$net", "region": "us-central1", "ipCidrRange": "10.0.0.0/20"},
    ),
    "gke": Made(
        "gcp:container/cluster:Cluster",
        {
            "name": "gke",
            "location": "us-central1",
            "network": "$net",
            "subnetwork": "$sub",
            "initialNodeCount": 1,
            "removeDefaultNodePool": True,
            "deletionProtection": False,
        },
    ),
}


def gke_cluster() -> dict[str, Made]:
    """A cluster in us-central1 without nodes."""
    return dict(_GKE)


def _gke(node: dict[str, Any], **more: Any) -> dict[str, Made]:
    pool = {"cluster": "$gke.name", "location": "us-central1", "nodeConfig": node, **more}
    return {**_GKE, "pool": Made("gcp:container/nodePool:NodePool", pool)}


def _l4(driver: str = "DEFAULT", **more: Any) -> dict[str, Any]:
    gpus = {"type": "nvidia-l4", "count": 1, "gpuDriverInstallationConfig": {"gpuDriverVersion": driver}}
    return {"machineType": "g2-standard-12", "guestAccelerators": [gpus], **more}


_T4 = {"machineType": "n1-standard-8", "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 1}]}
_FOUR = {"minSize": 0, "desiredSize": 0, "maxSize": 4}
_TO_ZERO = {"totalMinNodeCount": 0, "totalMaxNodeCount": 4}
TEMPLATE = Made("aws:ec2/launchTemplate:LaunchTemplate", {"name": "nodes", "instanceType": "g6.2xlarge"})
BY_TEMPLATE = _POOL.but(instanceTypes=DROP, launchTemplate={"id": "$template", "version": "1"})

EXAMPLES = {
    "MLS-GPU-01": Example(
        eks(pool=_POOL),
        eks(pool=_POOL.but(instanceTypes=["g4dn.xlarge"])),
        at="pool",
        path="instanceTypes[0]",
    ),
    "MLS-GPU-01.template": Example(
        eks(template=TEMPLATE, pool=BY_TEMPLATE),
        eks(template=TEMPLATE.but(instanceType="g4dn.xlarge"), pool=BY_TEMPLATE),
        at="template",
        path="instanceType",
    ),
    "MLS-GPU-01.gke": Example(
        _gke(_l4(), initialNodeCount=1),
        _gke(_T4, initialNodeCount=1),
        at="pool",
        path="nodeConfig.guestAccelerators[0]",
    ),
    "MLS-GPU-02": Example(
        eks(pool=_POOL, template=TEMPLATE, more=BY_TEMPLATE),
        eks(
            template=TEMPLATE.but(instanceType="p4d.24xlarge"),
            pool=BY_TEMPLATE.but(scalingConfig={"minSize": 0, "desiredSize": 0, "maxSize": 9}),
        ),
        at="",
    ),
    "MLS-GPU-02.gke": Example(
        _gke(_l4(), initialNodeCount=0, autoscaling={"minNodeCount": 0, "maxNodeCount": 10}),
        _gke(_l4(), initialNodeCount=0, autoscaling={"minNodeCount": 0, "maxNodeCount": 20}),
        at="",
    ),
    "MLS-GPU-03": Example(
        eks(system=_SYSTEM, pool=_POOL.but(capacityType="SPOT"), bucket=_BUCKET),
        eks(system=_SYSTEM, pool=_POOL.but(capacityType="SPOT")),
        at="pool",
        path="capacityType",
    ),
    "MLS-GPU-03.system": Example(
        eks(system=_SYSTEM), eks(system=_SYSTEM.but(capacityType="SPOT")), at="system", path="capacityType"
    ),
    "MLS-GPU-03.gke": Example(
        {
            **_gke(_l4(spot=True), initialNodeCount=0),
            "bucket": Made("gcp:storage/bucket:Bucket", {"name": "team-checkpoints", "location": "US"}),
        },
        _gke(_l4(spot=True), initialNodeCount=0),
        at="pool",
        path="nodeConfig.spot",
    ),
    "MLS-GPU-04": Example(
        eks(pool=_POOL),
        eks(pool=_POOL.but(scalingConfig={"minSize": 1, "desiredSize": 1, "maxSize": 4})),
        at="pool",
        path="scalingConfig.minSize",
    ),
    "MLS-GPU-04.gke": Example(
        _gke(_l4(), initialNodeCount=0, autoscaling=_TO_ZERO),
        _gke(_l4(), nodeCount=1),
        at="pool",
        path="nodeCount",
    ),
    "MLS-GPU-05": Example(
        eks(pool=_POOL, autoscaler=_AUTOSCALER), eks(pool=_POOL), at="pool", path="scalingConfig.minSize"
    ),
    "MLS-GPU-05.gke": Example(
        _gke(_l4(), initialNodeCount=0, autoscaling=_TO_ZERO),
        _gke(_l4(), nodeCount=1),
        at="pool",
        path="nodeCount",
    ),
    "MLS-GPU-06": Example(
        eks(pool=_POOL),
        eks(pool=_POOL.but(nodeRepairConfig=DROP)),
        at="pool",
        path="nodeRepairConfig.enabled",
    ),
    "MLS-GPU-06.gke": Example(
        _gke(_l4(), nodeCount=1),
        _gke(_l4(), nodeCount=1, management={"autoRepair": False, "autoUpgrade": True}),
        at="pool",
        path="management.autoRepair",
    ),
    "MLS-GPU-12": Example(
        eks(pool=_POOL.but(subnetIds=["$a"])),
        eks(pool=_POOL.but(subnetIds=["$a", "$b"], scalingConfig=_FOUR)),
        at="pool",
        path="subnetIds",
    ),
    "MLS-GPU-07": Example(eks(pool=_POOL), eks(pool=_POOL.but(taints=DROP)), at="pool", path="taints"),
    "MLS-GPU-07.gke": Example(
        _gke(_l4(taints=[{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}])),
        _gke(_l4()),
        at="pool",
        path="nodeConfig.taints",
    ),
    "MLS-GPU-08": Example(
        eks(pool=_POOL), eks(pool=_POOL.but(amiType="AL2023_x86_64_STANDARD")), at="pool", path="amiType"
    ),
    "MLS-GPU-08.gke": Example(
        _gke(_l4()),
        _gke(_l4("INSTALLATION_DISABLED")),
        at="pool",
        path="nodeConfig.guestAccelerators[0].gpuDriverInstallationConfig.gpuDriverVersion",
    ),
    "MLS-GPU-09": Example(
        eks(pool=_POOL.but(instanceTypes=["g6.2xlarge", "g6.4xlarge"])),
        eks(pool=_POOL.but(instanceTypes=["g6.2xlarge", "g6.12xlarge"])),
        at="pool",
        path="instanceTypes[1]",
    ),
}
