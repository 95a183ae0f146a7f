"""Components can be packaged for other languages: their arguments and outputs have types and descriptions."""

import pulumi
from pulumi.provider.experimental.analyzer import Analyzer

from components.gcp.cluster.gke import GcpCluster
from components.gcp.network.accelerators import GcpAcceleratorNetworks
from components.gcp.network.objects import GcpNetworkObjects
from components.gcp.network.vpc import GcpNetwork


def test_a_schema_can_be_inferred_so_that_the_components_can_be_packaged() -> None:
    classes: list[type[pulumi.ComponentResource]] = [
        GcpNetwork,
        GcpAcceleratorNetworks,
        GcpNetworkObjects,
        GcpCluster,
    ]
    found = Analyzer("trainstack").analyze(classes)["component_definitions"]

    assert set(found) == {one.__name__ for one in classes}
    assert {"subnetworkId", "servicesNetwork", "podRangeName"} <= set(found["GcpNetwork"].outputs)
    assert set(found["GcpAcceleratorNetworks"].outputs) == {"attachments"}
    assert found["GcpCluster"].inputs["deletionProtection"].optional
    for component in found.values():
        described = {**component.inputs, **component.outputs}
        assert [name for name, prop in described.items() if not prop.description] == []
