"""GKE clusters and node pools. Source: GKE API v1; terraform-provider-google, services/container."""

import base64
import re
from collections.abc import Mapping
from typing import Any

from rehearsal.accounts import project_number
from rehearsal.core.emulation.site import Hooks, refuse
from rehearsal.core.emulation.templates import draw, expand
from rehearsal.core.model import Properties, Record
from rehearsal.gcp import facts
from rehearsal.gcp.site import Site

CLUSTER = "container/cluster:Cluster"
POOL = "container/nodePool:NodePool"
# `clusterIdRegex` of resource_container_node_pool.go: the location in the cluster's id wins over the pool's
# own.
_LOCATED = re.compile(r"projects/[^/]+/locations/(?P<location>[^/]+)/clusters/[^/]+")
_ADVANCED = "ADVANCED_DATAPATH"


def _cluster_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    location, name = str(outputs["location"]), str(outputs["name"])
    kind = "zones" if location.count("-") > 1 else "locations"
    link = f"https://container.googleapis.com/v1/projects/{site.project}/{kind}/{location}/clusters/{name}"
    endpoint = expand("{publicip}", f"{seed}/endpoint", {})
    authority = f"-----BEGIN CERTIFICATE-----\n{draw(f'{seed}/ca', 64)}\n-----END CERTIFICATE-----\n"
    version = str(inputs.get("minMasterVersion") or next(iter(facts.catalog().gke_versions)))
    more: Properties = {
        "selfLink": link,
        "endpoint": endpoint,
        "masterAuth": {
            "clientCertificate": "",
            "clientKey": "",
            "clientCertificateConfig": {"issueClientCertificate": False},
            **(inputs.get("masterAuth") or {}),
            "clusterCaCertificate": base64.b64encode(authority.encode()).decode(),
        },
        "masterVersion": version,
        "nodeVersion": inputs.get("nodeVersion") or version,
        "nodeLocations": inputs.get("nodeLocations") or _other_zones(location),
        "network": _path(site, inputs.get("network") or "default", "compute/network:Network"),
        "releaseChannel": inputs.get("releaseChannel") or {"channel": "REGULAR"},
        "networkingMode": inputs.get("networkingMode") or "VPC_NATIVE",
    }
    if inputs.get("subnetwork"):
        more["subnetwork"] = _path(site, inputs["subnetwork"], "compute/subnetwork:Subnetwork")
    return {
        **more,
        **_private(inputs, endpoint, seed),
        **_autopilot(site, inputs),
        "controlPlaneEndpointsConfig": _endpoints(site, seed, inputs, location),
    }


def _endpoints(site: Site, seed: str, inputs: Properties, location: str) -> Properties:
    """Every cluster has a DNS name and an IP address; the program configures access to them."""
    given = inputs.get("controlPlaneEndpointsConfig")
    given = given if isinstance(given, dict) else {}
    region = facts.region_of(location)
    number = project_number(site.project)
    name = f"gke-{draw(f'{seed}/dns', 32)}-{number}.{region}.gke.goog"
    dns = given.get("dnsEndpointConfig")
    return {
        **given,
        "dnsEndpointConfig": {
            "allowExternalTraffic": False,
            **(dns if isinstance(dns, dict) else {}),
            "endpoint": name,
        },
        "ipEndpointsConfig": given.get("ipEndpointsConfig") or {"enabled": True},
    }


def _private(inputs: Properties, endpoint: str, seed: str) -> Properties:
    given = inputs.get("privateClusterConfig")
    if not isinstance(given, dict):
        return {}
    inner = expand("{privateip}", f"{seed}/private", {})
    more: Properties = {
        "privateClusterConfig": {**given, "privateEndpoint": inner, "publicEndpoint": endpoint}
    }
    if given.get("enablePrivateEndpoint"):
        more["endpoint"] = inner
    return more


def _autopilot(site: Site, inputs: Properties) -> Properties:
    """Autopilot enables workload identity and Dataplane V2."""
    if not inputs.get("enableAutopilot"):
        return {}
    pool = {"workloadPool": f"{site.project}.svc.id.goog"}
    return {
        "workloadIdentityConfig": inputs.get("workloadIdentityConfig") or pool,
        "datapathProvider": _ADVANCED,
    }


def _other_zones(location: str) -> list[str]:
    return list(facts.zones(location)) if location.count("-") == 1 else []


def _path(site: Site, value: str, token: str) -> str:
    found = site.find(value, token)
    return found.id if found else site.path(value)


def _cluster_created(site: Site, cluster: Record) -> None:
    """GKE creates firewall rules in the cluster's network, which are deleted with the cluster.

    Source: GKE documentation, "Firewall rules in GKE" (automatically created).
    """
    network = site.find(cluster.outputs.get("network"), "compute/network:Network")
    mark = draw(f"{cluster.key}/firewall", 8)
    for purpose in ("all", "master", "vms", "inkubelet", "exkubelet"):
        name = f"gke-{cluster.name[:23]}-{mark}-{purpose}"
        key = f"projects/{site.project}/global/firewalls/{name}"
        outputs = {"name": name, "network": cluster.outputs.get("network"), "project": site.project}
        uses = {"network": network} if network else None
        site.hidden(cluster, "compute/firewall:Firewall", key, outputs, {key}, name=name, uses=uses)


def _cluster_deleting(site: Site, cluster: Record) -> None:
    """Node pools are deleted with their cluster; the engine deletes its own before."""
    for pool in list(site.state.find(package="gcp", type=f"gcp:{POOL}", scope=cluster.scope)):
        if pool.id.startswith(f"{cluster.id}/nodePools/"):
            site.state.remove(pool)


def _pool_outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    cluster = site.find(inputs.get("cluster"), CLUSTER)
    home = _LOCATED.search(str(inputs.get("cluster")))
    location = home["location"] if home else str(outputs["location"])
    moved = {"location": location, "id": f"{home[0]}/nodePools/{outputs['name']}"} if home else {}
    places = list(
        inputs.get("nodeLocations") or (cluster.outputs.get("nodeLocations") if cluster else None) or []
    )
    places = places or ([location] if location.count("-") > 1 else list(facts.zones(location)))
    groups, managers = [], []
    prefix = f"gke-{cluster.name if cluster else 'cluster'}-{outputs['name']}"[:38]
    for zone in places:
        group = f"{prefix}-{draw(f'{seed}/{zone}', 8)}-grp"
        base = f"https://www.googleapis.com/compute/v1/projects/{site.project}/zones/{zone}"
        groups.append(f"{base}/instanceGroups/{group}")
        managers.append(f"{base}/instanceGroupManagers/{group}")
    return {
        **moved,
        "instanceGroupUrls": groups,
        "managedInstanceGroupUrls": managers,
        "nodeLocations": places,
        "version": inputs.get("version") or (cluster.outputs.get("nodeVersion") if cluster else None),
        "nodeCount": inputs.get("nodeCount", inputs.get("initialNodeCount", 1)),
        "management": {"autoRepair": True, "autoUpgrade": True, **(inputs.get("management") or {})},
        "nodeConfig": _node_config(inputs.get("nodeConfig")),
        "maxPodsPerNode": inputs.get("maxPodsPerNode", 110),
        **_accelerator_networks(inputs, str(outputs["name"])),
    }


def _accelerator_networks(inputs: Properties, pool: str) -> Properties:
    """The networks of GPUs that GKE makes itself show among those that a program could give.

    Source: terraform-provider-google, resource_container_node_pool_test.go (accelerator_network_profile).
    """
    given = inputs.get("networkConfig")
    config = given if isinstance(given, dict) else {}
    machine = str((inputs.get("nodeConfig") or {}).get("machineType"))
    wanted = facts.catalog().gpu_networks.get(machine)
    if config.get("acceleratorNetworkProfile") != "auto" or wanted is None:
        return {}
    made = [
        {"network": f"gke-{pool}-gpu-{index}", "subnetwork": f"gke-{pool}-gpu-{index}"}
        for index in range(wanted.total)
    ]
    return {"networkConfig": {**config, "additionalNodeNetworkConfigs": made}}


def _node_config(given: Any) -> Properties:
    config = given if isinstance(given, dict) else {}
    name = str(config.get("machineType") or "e2-medium")
    defaults: Properties = {
        "machineType": name,
        "diskSizeGb": 100,
        "imageType": "COS_CONTAINERD",
        "serviceAccount": "default",
        "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
    }
    machine = facts.catalog().machine_types.get(name)
    if machine and not config.get("guestAccelerators"):
        defaults["guestAccelerators"] = [{"type": machine.accelerator, "count": machine.count}]
    return {**defaults, **config}


def _pool_updated(site: Site, pool: Record, inputs: Properties) -> Properties:
    """The version that GKE chose is kept, and the location of the cluster."""
    version = inputs.get("version") or pool.outputs.get("version")
    return {"version": version, "location": pool.outputs.get("location")}


def _cluster_updated(site: Site, cluster: Record, inputs: Properties) -> Properties:
    """The control plane cannot be downgraded to an older minor version."""
    old, wanted = cluster.outputs, inputs.get("minMasterVersion")
    has = str(old.get("masterVersion"))
    if isinstance(wanted, str) and wanted != "latest" and _minor(wanted) < _minor(has):
        raise refuse(
            "invalidArgument",
            f'Master cannot be upgraded to "{wanted}": cannot upgrade to a lower version than {has}',
            "minMasterVersion",
        )
    return {
        "network": old.get("network"),
        "subnetwork": old.get("subnetwork"),
        "masterVersion": wanted if isinstance(wanted, str) and _minor(wanted) > _minor(has) else has,
    }


def _minor(version: str) -> tuple[int, ...]:
    parts = version.split("-", maxsplit=1)[0].split(".")[:2]
    return tuple(int(part) for part in parts if part.isdigit())


HOOKS: Mapping[str, Hooks[Site]] = {
    CLUSTER: Hooks(
        outputs=_cluster_outputs,
        created=_cluster_created,
        updated=_cluster_updated,
        deleting=_cluster_deleting,
    ),
    POOL: Hooks(outputs=_pool_outputs, updated=_pool_updated),
}
