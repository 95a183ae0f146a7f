"""Networks beside GPUs as Kubernetes objects, which pods name to get their interfaces."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi

from components.base import Component, Options
from components.gcp.network.accelerators import PodNetworkArgs
from components.kubernetes.manifest import Manifest

_API = "networking.gke.io"


class GcpNetworkObjectsArgs(TypedDict):
    """The networks of the objects."""

    networks: Sequence[PodNetworkArgs]
    """The `objects` of a `GcpAcceleratorNetworks`."""


class GcpNetworkObjects(Component):
    """A `Network` and its `GKENetworkParamSet` for each interface of a pool.

    Kinds and fields: GKE documentation, "Set up multi-network support for Pods". GKE has these kinds in
    clusters with multi-networking, and keeps a network while a pod uses it. Needs the Kubernetes provider.
    *Untested on hardware.*
    """

    names: pulumi.Output[Sequence[str]]
    """Names of the Network objects, in the order of the interfaces; usable once they exist."""

    def __init__(self, name: str, args: GcpNetworkObjectsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        made = [self._network(one) for one in args["networks"]]
        known = [one["name"] for one in args["networks"]]
        self.names = pulumi.Output.all(*(network.urn for network in made)).apply(lambda _: known)
        self.register_declared()

    def _network(self, one: PodNetworkArgs) -> Manifest:
        name = one["name"]
        parameters = Manifest(
            f"{name}-parameters",
            {
                "apiVersion": f"{_API}/v1",
                "kind": "GKENetworkParamSet",
                "metadata": {"name": name},
                "spec": {"vpc": one["vpc"], "vpcSubnet": one["subnetwork"], "deviceMode": one["device_mode"]},
            },
            self.child(),
        )
        return Manifest(
            name,
            {
                "apiVersion": f"{_API}/v1",
                "kind": "Network",
                "metadata": {"name": name},
                "spec": {
                    "type": "Device",
                    "parametersRef": {"group": _API, "kind": "GKENetworkParamSet", "name": name},
                },
            },
            self.child(pulumi.ResourceOptions(depends_on=[parameters])),
        )
