"""GKE: clusters and pools of nodes.

Shapes: google/services/container/{resource_container_cluster,resource_container_node_pool,node_config}.go of
terraform-provider-google (flattenMasterAuthorizedNetworksConfig, flattenReleaseChannel, flattenNodePool).
"""

from typing import Any

from policies.sources.live.gcp.assets import asset, assets, named, number, switch
from policies.sources.live.mapping import Each, One, QueryRefusedError, Shape, View, same
from policies.sources.live.queries import ApiRefusal

_CLUSTER, _POOL = "container.googleapis.com/Cluster", "container.googleapis.com/NodePool"
_MANAGER = "compute.googleapis.com/InstanceGroupManager"
_GROUPS = assets(_MANAGER).name
QUERIES = (assets(_CLUSTER), assets(_POOL), assets(_MANAGER))


def _id(view: View) -> str:
    """Asset names have zones under `zones`, the provider all locations under `locations`."""
    return named(view).replace("/zones/", "/locations/")


def _place(view: View) -> str:
    return _id(view).split("/")[3]


def _cluster_of(view: View) -> str:
    return _id(view).rpartition("/nodePools/")[0]


def _scaling(view: View) -> Any:
    """Bounds of a pool with autoscaling; a pool without may still have some."""
    scaling = view.at("autoscaling")
    if not isinstance(scaling, dict) or scaling.get("enabled") is not True:
        return None
    names = ("minNodeCount", "maxNodeCount", "totalMinNodeCount", "totalMaxNodeCount")
    bounds = {name: int(scaling.get(name) or 0) for name in names}
    return {**bounds, "locationPolicy": scaling.get("locationPolicy")}


def _size(view: View) -> Any:
    """Nodes per zone, as the provider counts them: by the instance groups of the pool.

    Raises QueryRefusedError if groups could not be read. None if a group is missing, as during creation.
    """
    answer = view.look.one(_GROUPS, {})
    if isinstance(answer, ApiRefusal):
        raise QueryRefusedError(answer)
    links = view.at("instanceGroupUrls") or ()
    groups = [view.look.first(_GROUPS, "selfLink", link) for link in links]
    if not groups or None in groups:
        return None
    return sum(int(group.get("targetSize") or 0) for group in groups) // len(groups)


_NODE: Shape = {
    **same("diskSizeGb", "diskType", "flexStart", "imageType", "labels", "machineType", "preemptible"),
    **same("resourceLabels", "serviceAccount", "spot"),
    "effectiveTaints": Each("taints", same("effect", "key", "value")),
    "guestAccelerators": Each(
        "accelerators",
        {
            "count": number("acceleratorCount"),
            "type": "acceleratorType",
            "gpuDriverInstallationConfig": One(
                "gpuDriverInstallationConfig", {"gpuDriverVersion": "gpuDriverVersion"}
            ),
        },
    ),
    "gvnic": One("gvnic", {"enabled": switch("enabled")}),
    "reservationAffinity": One("reservationAffinity", same("consumeReservationType", "key", "values")),
    "workloadMetadataConfig": One("workloadMetadataConfig", {"mode": "mode"}),
}
_NODES: Shape = {
    "autoscaling": _scaling,
    **same("initialNodeCount", "name", "version"),
    "management": One(
        "management", {"autoRepair": switch("autoRepair"), "autoUpgrade": switch("autoUpgrade")}
    ),
    "networkConfig": One("networkConfig", {"enablePrivateNodes": "enablePrivateNodes"}),
    "nodeConfig": One("config", _NODE),
    "nodeCount": _size,
    "nodeLocations": "locations",
    "placementPolicy": One("placementPolicy", same("policyName", "type")),
    "queuedProvisioning": One("queuedProvisioning", {"enabled": switch("enabled")}),
}


def _manageable(view: View) -> bool:
    """Exclude pools of Autopilot, which Google creates and a program cannot manage."""
    cluster = str(view.at("assetName")).rpartition("/nodePools/")[0]
    found = view.look.first(assets(_CLUSTER).name, "assetName", cluster) or {}
    return (found.get("autopilot") or {}).get("enabled") is not True


def _others(view: View) -> Any:
    return [zone for zone in view.at("locations") or () if zone != view.at("location")] or None


def _no_default_pool(view: View) -> bool:
    return all(pool.get("name") != "default-pool" for pool in view.at("nodePools") or ())


def _named_networks(view: View) -> Any:
    """Authorized networks of the endpoint; None if they are disabled, so that all networks are."""
    for path in (
        "controlPlaneEndpointsConfig.ipEndpointsConfig.authorizedNetworksConfig",
        "masterAuthorizedNetworksConfig",
    ):
        found = view.at(path)
        if isinstance(found, dict) and found.get("enabled") is True:
            blocks = [
                {name: one[name] for name in ("cidrBlock", "displayName") if name in one}
                for one in found.get("cidrBlocks") or ()
            ]
            google = found.get("gcpPublicCidrsAccessEnabled") is True
            return {"cidrBlocks": blocks, "gcpPublicCidrsAccessEnabled": google}
    return None


def _private(view: View) -> Any:
    """Privacy of nodes and endpoint; the endpoint also has a newer, inverted setting."""
    public = view.at("controlPlaneEndpointsConfig.ipEndpointsConfig.enablePublicEndpoint")
    older = view.at("privateClusterConfig") or {}
    nodes = view.at("networkConfig.defaultEnablePrivateNodes")
    if not older and public is None and nodes is None:
        return None
    return {
        "enablePrivateEndpoint": older.get("enablePrivateEndpoint") is True or public is False,
        "enablePrivateNodes": older.get("enablePrivateNodes") is True or nodes is True,
    }


def _limits(view: View) -> Any:
    """Limits of node auto-provisioning; disabled by default."""
    found = view.at("autoscaling")
    if not isinstance(found, dict):
        return None
    limits = [
        {
            "resourceType": one.get("resourceType"),
            "minimum": int(one.get("minimum") or 0),
            "maximum": int(one.get("maximum") or 0),
        }
        for one in found.get("resourceLimits") or ()
    ]
    return {"enabled": found.get("enableNodeAutoprovisioning") is True, "resourceLimits": limits}


KINDS = (
    asset(
        "gcp:container/cluster:Cluster",
        _CLUSTER,
        {
            "clusterAutoscaling": _limits,
            "controlPlaneEndpointsConfig": One(
                "controlPlaneEndpointsConfig",
                {"ipEndpointsConfig": One("ipEndpointsConfig", {"enabled": "enabled"})},
            ),
            "databaseEncryption": One("databaseEncryption", same("keyName", "state")),
            "datapathProvider": "networkConfig.datapathProvider",
            **same("description", "endpoint", "location", "loggingService", "name", "resourceLabels"),
            **same("selfLink"),
            "enableAutopilot": switch("autopilot.enabled"),
            "loggingConfig": One(
                "loggingConfig",
                {"enableComponents": lambda view: view.at("componentConfig.enableComponents") or []},
            ),
            "masterAuthorizedNetworksConfig": _named_networks,
            "masterVersion": "currentMasterVersion",
            "network": lambda view: view.at("networkConfig.network") or view.at("network"),
            "networkPolicy": One("networkPolicy", {"enabled": switch("enabled"), "provider": "provider"}),
            "nodeLocations": _others,
            "nodePools": Each("nodePools", _NODES),
            "privateClusterConfig": _private,
            # A cluster without a channel has none, or an empty one.
            "releaseChannel": lambda view: {"channel": view.at("releaseChannel.channel") or "UNSPECIFIED"},
            "removeDefaultNodePool": _no_default_pool,
            "subnetwork": lambda view: view.at("networkConfig.subnetwork") or view.at("subnetwork"),
            "workloadIdentityConfig": One("workloadIdentityConfig", {"workloadPool": "workloadPool"}),
        },
        id=_id,
        labels="resourceLabels",
        program_only=("deletionProtection",),
    ),
    asset(
        "gcp:container/nodePool:NodePool",
        _POOL,
        {**_NODES, "cluster": _cluster_of, "location": _place},
        id=_id,
        labels="",
        when=_manageable,
    ),
)
