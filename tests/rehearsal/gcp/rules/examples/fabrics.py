"""For every rule about GPUs and fabrics: what is accepted, what is refused, where, and in which world."""

from typing import Any

from infra.catalog.gcp import facts
from tests.rehearsal.gcp.rules.examples.gke import CLUSTER, NETWORK, POOL, SUBNETWORK, Made
from tests.rehearsal.gcp.rules.examples.pools import CLUSTERS, UNPROTECTED, pool


def gpus(machine: str, kind: str, count: int) -> dict[str, Any]:
    return pool({"machineType": machine, "guestAccelerators": [{"type": kind, "count": count}]})


def networks(count: int, first: str = "gpu", rdma: int = 0) -> dict[str, Any]:
    plain = [{"network": first, "subnetwork": f"{first}-{index}"} for index in range(count)]
    fast = [{"network": "rdma", "subnetwork": f"rdma-{index}"} for index in range(rdma)]
    return {"networkConfig": {"additionalNodeNetworkConfigs": [*plain, *fast]}}


RDMA_SPACE: list[Made] = [
    (NETWORK, "gpu", {"name": "gpu", "autoCreateSubnetworks": False}),
    (
        NETWORK,
        "rdma",
        {
            "name": "rdma",
            "autoCreateSubnetworks": False,
            "networkProfile": "projects/research/global/networkProfiles/us-central1-a-vpc-roce",
        },
    ),
]

ULTRA = facts.gpu_networks["a3-ultragpu-8g"]


ULTRA_NODE = {"machineType": "a3-ultragpu-8g", "spot": True}

ADDITIONAL = "networkConfig.additionalNodeNetworkConfigs"

DRANET = {"cloud.google.com/gke-networking-dra-driver": "true"}


def _ranges(*cidrs: str) -> list[Made]:
    """Networks with a subnetwork each, called `gpu-0` and so on."""
    return [
        made
        for index, cidr in enumerate(cidrs)
        for made in (
            (NETWORK, f"gpu-{index}", {"name": f"gpu-{index}", "autoCreateSubnetworks": False}),
            (
                SUBNETWORK,
                f"gpu-{index}-sub",
                {"name": f"gpu-{index}", "network": f"gpu-{index}", "ipCidrRange": cidr},
            ),
        )
    ]


def _in(*networks: int) -> dict[str, Any]:
    given = [{"network": f"gpu-{index}", "subnetwork": f"gpu-{index}"} for index in networks]
    return {"networkConfig": {"additionalNodeNetworkConfigs": given}}


SHARED: list[Made] = [
    *CLUSTERS,
    *_ranges("10.1.0.0/21", "10.1.8.0/21", "10.1.0.0/20"),
    (POOL, "first", pool(name="first", **_in(0, 1))),
]

# id -> (type, world, accepted inputs, refused inputs, path of the violation)
EXAMPLES: dict[str, tuple[str, list[Any], dict[str, Any], dict[str, Any], str]] = {
    "GCP-GPU-001": (
        POOL,
        [],
        gpus("a3-highgpu-8g", "nvidia-h100-80gb", 8),
        gpus("a3-highgpu-8g", "nvidia-h100-80gb", 4),
        "nodeConfig.guestAccelerators[0].count",
    ),
    "GCP-GPU-002": (
        POOL,
        [],
        gpus("a3-megagpu-8g", "nvidia-h100-mega-80gb", 8),
        gpus("a3-megagpu-8g", "nvidia-h100-80gb", 8),
        "nodeConfig.guestAccelerators[0].type",
    ),
    "GCP-GPU-003": (
        POOL,
        [],
        pool({"machineType": "a3-megagpu-8g"}, **networks(8)),
        pool({"machineType": "a3-megagpu-8g"}, **networks(4)),
        ADDITIONAL,
    ),
    "GCP-GPU-004": (
        POOL,
        RDMA_SPACE,
        pool(ULTRA_NODE, **networks(ULTRA.networks, rdma=ULTRA.rdma_subnetworks)),
        pool(ULTRA_NODE, **networks(ULTRA.total)),
        ADDITIONAL,
    ),
    "GCP-GPU-005": (
        POOL,
        [*CLUSTERS, (CLUSTER, "plain", {**UNPROTECTED, "name": "plain"})],
        pool(**networks(1)),
        {"cluster": "plain", **networks(1)},
        ADDITIONAL,
    ),
    "GCP-GPU-006": (
        POOL,
        [],
        pool(**networks(2)),
        pool(networkConfig={"additionalNodeNetworkConfigs": [{"network": "a", "subnetwork": "b"}] * 2}),
        f"{ADDITIONAL}[1].subnetwork",
    ),
    "GCP-GPU-007": (
        POOL,
        [],
        pool(networkConfig={"acceleratorNetworkProfile": "auto"}),
        pool(networkConfig={"acceleratorNetworkProfile": "auto", **networks(1)["networkConfig"]}),
        ADDITIONAL,
    ),
    "GCP-GPU-008": (
        POOL,
        [*CLUSTERS, (CLUSTER, "plain", {**UNPROTECTED, "name": "plain"})],
        pool(networkConfig={"acceleratorNetworkProfile": "auto"}),
        {"cluster": "plain", "networkConfig": {"acceleratorNetworkProfile": "auto"}},
        "networkConfig.acceleratorNetworkProfile",
    ),
    "GCP-GPU-009": (
        POOL,
        [],
        pool({"machineType": "a4-highgpu-8g", "spot": True, "labels": DRANET}),
        pool({"machineType": "a3-megagpu-8g", "labels": DRANET}),
        'nodeConfig.labels["cloud.google.com/gke-networking-dra-driver"]',
    ),
    "GCP-GPU-011": (POOL, SHARED, pool(**_in(0, 1)), pool(**_in(2)), f"{ADDITIONAL}[0].subnetwork"),
    "GCP-GPU-012": (
        POOL,
        SHARED,
        pool(**_in(0, 1)),
        pool(networkConfig={"acceleratorNetworkProfile": "auto"}),
        "networkConfig",
    ),
    "GCP-GPU-010": (
        POOL,
        [],
        pool({"machineType": "a3-megagpu-8g"}, nodeLocations=["us-east5-a"]),
        pool({"machineType": "a3-megagpu-8g"}, nodeLocations=["us-east5-b"]),
        "nodeLocations[0]",
    ),
}
