"""Networks beside GPUs as Kubernetes objects, which pods name to get their interfaces."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi

from components.base import Component, Options
from components.gcp.network.accelerators import PodNetworkArgs
from components.kubernetes.manifest import Manifest

_API = "networking.gke.io"


class GcpNetworkObjectsArgs(TypedDict):
    """The networks of the objects."""

    networks: Sequence[PodNetworkArgs]
    """The `objects` of a `GcpAcceleratorNetworks`."""
    formerly: NotRequired[Sequence[str]]
    """Pools whose own objects are continued: their names began with the pool's. Default: none."""


class GcpNetworkObjects(Component):
    """A `Network` and its `GKENetworkParamSet` for each interface of a set of networks.

    Kinds and fields: GKE documentation, "Set up multi-network support for Pods". GKE has these kinds in
    clusters with multi-networking, and keeps a network while a pod uses it. Neither can be changed. The older
    of two parameters of one subnetwork has it, and the other never gets ready (kubernetes/cloud-provider-gcp@
    4e245312 pkg/controller/gkenetworkparamset, `DeviceModeSubnetAlreadyInUse`), so that an object is deleted
    before another takes its place. Needs the Kubernetes provider. *Untested on hardware.*
    """

    names: pulumi.Output[Sequence[str]]
    """Names of the Network objects, in the order of the interfaces; usable once they exist."""

    def __init__(self, name: str, args: GcpNetworkObjectsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        self._formerly = args.get("formerly", ())
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
            self._opts(f"{name}-parameters"),
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
            pulumi.ResourceOptions.merge(self._opts(name), pulumi.ResourceOptions(depends_on=[parameters])),
        )

    def _opts(self, name: str) -> pulumi.ResourceOptions:
        former = [pulumi.Alias(name=f"{pool}-{name}") for pool in self._formerly]
        return self.child(
            pulumi.ResourceOptions(aliases=[*former], delete_before_replace=True, replace_on_changes=["spec"])
        )
