"""Networks, subnetworks and firewall rules.

Shapes: google/services/compute/resource_compute_{network,subnetwork,firewall}.go of
terraform-provider-google.
"""

from typing import Any

from policies.sources.live.gcp.assets import asset, assets, end_of
from policies.sources.live.mapping import Each, One, Shape, View, same

_NETWORK, _SUBNETWORK = "compute.googleapis.com/Network", "compute.googleapis.com/Subnetwork"
_FIREWALL = "compute.googleapis.com/Firewall"
QUERIES = tuple(map(assets, (_NETWORK, _SUBNETWORK, _FIREWALL)))

_PORTS: Shape = {"protocol": "IPProtocol", "ports": "ports"}
# Rules that GKE creates for a cluster and its services (GKE, "Automatically created firewall rules").
_OF_GKE = ("gke-", "k8s-")


def _logs(view: View) -> Any:
    """Settings of enabled flow logs: a subnetwork also keeps those of disabled ones."""
    if view.at("logConfig.enable") is not True:
        return None
    names = ("aggregationInterval", "filterExpr", "flowSampling", "metadata")
    return {name: value for name in names if (value := view.at(f"logConfig.{name}")) is not None}


KINDS = (
    asset(
        "gcp:compute/network:Network",
        _NETWORK,
        {
            **same("autoCreateSubnetworks", "description", "mtu", "name", "networkProfile", "selfLink"),
            "routingMode": "routingConfig.routingMode",
        },
        labels="",
    ),
    asset(
        "gcp:compute/subnetwork:Subnetwork",
        _SUBNETWORK,
        {
            **same("description", "ipCidrRange", "name", "network", "privateIpGoogleAccess", "purpose"),
            **same("selfLink", "stackType"),
            "logConfig": _logs,
            "region": end_of("region"),
        },
        labels="",
    ),
    asset(
        "gcp:compute/firewall:Firewall",
        _FIREWALL,
        {
            "allows": Each("allowed", _PORTS),
            "denies": Each("denied", _PORTS),
            **same("description", "direction", "disabled", "name", "network", "priority", "selfLink"),
            **same("sourceRanges", "sourceServiceAccounts", "sourceTags", "targetServiceAccounts"),
            **same("targetTags"),
            "logConfig": One("logConfig", {"metadata": "metadata"}),
        },
        labels="",
        made=lambda view: str(view.at("name")).startswith(_OF_GKE),
    ),
)
