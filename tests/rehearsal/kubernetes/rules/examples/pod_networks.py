"""Examples of rules about networks of GKE's nodes."""

from typing import Any

from rehearsal.core.model import Properties
from rehearsal.kubernetes.rules.objects.pod_networks import NETWORK, PARAMETERS
from tests.rehearsal.kubernetes.rules.building import Example, named


def parameters(name: str, subnetwork: str) -> Properties:
    return named(name, spec={"vpc": "gpu", "vpcSubnet": subnetwork, "deviceMode": "NetDevice"})


def network(name: str, **spec: Any) -> Properties:
    reference = {"group": "networking.gke.io", "kind": "GKENetworkParamSet", "name": "vpc1"}
    return named(name, spec={"type": "Device", "parametersRef": reference, **spec})


EXAMPLES = [
    Example(
        "K8S-GKE-001",
        PARAMETERS,
        parameters("vpc1", "gpu-1"),
        {"spec.vpcSubnet": "gpu-2"},
        "spec.vpcSubnet",
        world=[(PARAMETERS, parameters("h100-vpc2", "gpu-2"))],
    ),
    Example(
        "K8S-GKE-002",
        NETWORK,
        network("vpc1"),
        {"spec.type": "L3"},
        "spec",
        world=[(NETWORK, network("vpc1"))],
    ),
    Example(
        "K8S-GKE-003",
        NETWORK,
        network("n" * 41),
        {"metadata.name": "n" * 42},
        "metadata.name",
    ),
]
