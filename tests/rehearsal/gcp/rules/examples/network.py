"""For every rule about networks: what is accepted, what is refused, where, and in which world."""

from typing import Any

NETWORK, SUBNETWORK = "compute/network:Network", "compute/subnetwork:Subnetwork"
NAT, FIREWALL = "compute/routerNat:RouterNat", "compute/firewall:Firewall"
RANGE, POLICY = "compute/globalAddress:GlobalAddress", "compute/resourcePolicy:ResourcePolicy"
CONNECTION = "servicenetworking/connection:Connection"
SPACE = [(NETWORK, "net", {"name": "net", "autoCreateSubnetworks": False})]
WITH_SUBNETWORK: list[tuple[str, str, dict[str, Any]]] = [
    *SPACE,
    (SUBNETWORK, "sub", {"name": "sub", "network": "net", "ipCidrRange": "10.0.0.0/20"}),
]
BASE_NAT = {"router": "r", "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES"}
TCP = [{"protocol": "tcp"}]
PEERING = {"name": "peer", "purpose": "VPC_PEERING", "addressType": "INTERNAL", "prefixLength": 16}


def sub(**more: Any) -> dict[str, Any]:
    return {"network": "net", "ipCidrRange": "10.1.0.0/20", **more}


def ranges(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"rangeName": name, "ipCidrRange": cidr} for name, cidr in pairs]


# id -> (type, world, accepted inputs, refused inputs, path of the violation)
EXAMPLES: dict[str, tuple[str, list[Any], dict[str, Any], dict[str, Any], str]] = {
    "GCP-COMPUTE-001": ("compute/globalAddress:GlobalAddress", [], {"name": "a-1"}, {"name": "A_1"}, "name"),
    "GCP-COMPUTE-002": (NETWORK, [], {"mtu": 8896}, {"mtu": 9001}, "mtu"),
    "GCP-COMPUTE-003": (SUBNETWORK, [], sub(), sub(ipCidrRange="10.1.0.1/20"), "ipCidrRange"),
    "GCP-COMPUTE-004": (
        SUBNETWORK,
        [],
        sub(secondaryIpRanges=ranges(("pods", "10.64.0.0/14"))),
        sub(secondaryIpRanges=ranges(("pods", "10.0.0.0/14"))),
        "secondaryIpRanges[0].ipCidrRange",
    ),
    "GCP-COMPUTE-005": (
        SUBNETWORK,
        [],
        sub(secondaryIpRanges=ranges(("pods", "10.64.0.0/14"), ("services", "10.80.0.0/20"))),
        sub(secondaryIpRanges=ranges(("pods", "10.64.0.0/14"), ("pods", "10.80.0.0/20"))),
        "secondaryIpRanges[1].rangeName",
    ),
    "GCP-COMPUTE-006": (SUBNETWORK, WITH_SUBNETWORK, sub(), sub(ipCidrRange="10.0.8.0/24"), "ipCidrRange"),
    "GCP-COMPUTE-007": (
        NAT,
        [],
        {**BASE_NAT, "natIps": ["a"], "natIpAllocateOption": "MANUAL_ONLY"},
        {**BASE_NAT, "natIps": ["a"], "natIpAllocateOption": "AUTO_ONLY"},
        "natIps",
    ),
    "GCP-COMPUTE-008": (NAT, [], BASE_NAT, {**BASE_NAT, "subnetworks": [{"name": "s"}]}, "subnetworks"),
    "GCP-COMPUTE-011": (
        CONNECTION,
        [*SPACE, (RANGE, "peer", {**PEERING, "network": "net"}), (RANGE, "other", {"name": "other"})],
        {"network": "net", "service": "s", "reservedPeeringRanges": ["peer"]},
        {"network": "net", "service": "s", "reservedPeeringRanges": ["other"]},
        "reservedPeeringRanges[0]",
    ),
    "GCP-COMPUTE-012": (
        POLICY,
        [],
        {"workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "1x72"}},
        {"workloadPolicy": {"type": "HIGH_AVAILABILITY", "acceleratorTopology": "1x72"}},
        "workloadPolicy.acceleratorTopology",
    ),
    "GCP-COMPUTE-016": (
        NETWORK,
        [],
        {"networkProfile": "us-central1-a-vpc-roce", "autoCreateSubnetworks": False},
        {"networkProfile": "us-central1-a-vpc-roce"},
        "autoCreateSubnetworks",
    ),
    "GCP-COMPUTE-017": (
        CONNECTION,
        [],
        {"network": "n", "service": "s", "reservedPeeringRanges": ["peer"]},
        {"network": "n", "service": "s", "reservedPeeringRanges": []},
        "reservedPeeringRanges",
    ),
}
