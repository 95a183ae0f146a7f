"""Networks, addresses and machines. Source: terraform-provider-google, services/compute."""

from collections.abc import Mapping

from rehearsal.core.emulation.site import Hooks
from rehearsal.core.emulation.templates import expand
from rehearsal.core.model import Properties
from rehearsal.gcp.services import direct_vpc
from rehearsal.gcp.site import Site


def _network_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """A network with an RDMA profile has a larger default MTU.

    Source: VPC documentation, "RDMA network profiles" (MTU).
    """
    roce = "-vpc-roce" in str(inputs.get("networkProfile") or "")
    return {"mtu": 8896} if roce and not inputs.get("mtu") else {}


def _subnetwork_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """The provider returns the network as a link, whatever form the program used."""
    network = site.find(inputs.get("network"), "compute/network:Network")
    return {"network": network.outputs["selfLink"]} if network else {}


def _address_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """An internal address is one of the private ranges."""
    if inputs.get("addressType") != "INTERNAL" or inputs.get("address"):
        return {}
    return {"address": expand("{privateip}", seed, {})}


def _range_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """A range for peering starts at a multiple of its size; Google picks it when the program does not."""
    if inputs.get("addressType") != "INTERNAL" or inputs.get("address"):
        return {}
    taken = sum(1 for _ in site.others("compute/globalAddress:GlobalAddress"))
    return {"address": f"10.{100 + taken % 100}.0.0", "prefixLength": inputs.get("prefixLength", 16)}


def _machine_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """Every interface gets an internal address, and an external one with an access config."""
    interfaces = []
    for index, given in enumerate(inputs.get("networkInterfaces") or []):
        access = [
            {"natIp": expand("{publicip}", f"{seed}/{index}/{number}", {}), "networkTier": "PREMIUM", **one}
            for number, one in enumerate(given.get("accessConfigs") or [])
        ]
        added = {"networkIp": expand("{privateip}", f"{seed}/{index}", {}), "name": f"nic{index}"}
        interfaces.append({**added, **given, **({"accessConfigs": access} if access else {})})
    return {"networkInterfaces": interfaces}


HOOKS: Mapping[str, Hooks[Site]] = {
    "compute/network:Network": Hooks(outputs=_network_outputs),
    direct_vpc.SUBNETWORK: Hooks(outputs=_subnetwork_outputs, calls=direct_vpc.release),
    "compute/address:Address": Hooks(outputs=_address_outputs),
    "compute/globalAddress:GlobalAddress": Hooks(outputs=_range_outputs),
    "compute/instance:Instance": Hooks(outputs=_machine_outputs),
}
