"""Nodes that a GKE cluster has or can get, from the emulated node pools.

Source: GKE documentation, "About GPUs" and "Run GPUs" (taint, labels, sharing), "Create and manage cluster
and node pool labels", "Spot VMs", "Flex-start", "Arm workloads on GKE" (taint), "Topology Aware Scheduling"
(labels `cloud.google.com/gce-topology-*`), "Set up multi-network support for Pods" (a node has a resource for
each Network whose subnetwork it is in, and one of that name and `.IP`). Values that
Compute Engine sets at run time (topology blocks) are invented: one block per pool and zone, a host per node.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from infra.catalog.gcp import facts
from rehearsal.core.model import Record
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.workloads.scheduling import SchedulerNode, Taint

_POOL = "gcp:container/nodePool:NodePool"
_DEFAULT_POOL, _DEFAULT_MACHINE = "default-pool", "e2-medium"
_EFFECTS = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
}
GPU = "nvidia.com/gpu"
_GOOGLE = "cloud.google.com/"
_DISABLED = "INSTALLATION_DISABLED"


def gke_nodes(cluster: KubeCluster) -> list[SchedulerNode]:
    """One entry per node that the pools may grow to; those beyond the initial size do not run yet."""
    inputs = cluster.record.inputs
    if inputs.get("enableAutopilot"):
        # Autopilot adds nodes of the right size for any pod; the first stands for all.
        return [SchedulerNode(name="autopilot", group="autopilot", labels={"kubernetes.io/os": "linux"})]
    found = [node for name, pool in _own_pools(cluster) for node in _members(name, pool, {})]
    networks = _networks(cluster)
    for pool in cluster.state.find(type=_POOL):
        if pool.inputs.get("cluster") in (cluster.name, cluster.record.id):
            found += _members(str(pool.outputs.get("name") or pool.name), _settings(pool), networks)
    return found


def _networks(cluster: KubeCluster) -> dict[tuple[str, str], list[str]]:
    """Names of Network objects by VPC network and subnetwork of their parameters."""
    parameters = {one.name: one.outputs.get("spec") or {} for one in cluster.objects("GKENetworkParamSet")}
    found: dict[tuple[str, str], list[str]] = {}
    for network in cluster.objects("Network"):
        named = ((network.outputs.get("spec") or {}).get("parametersRef") or {}).get("name")
        spec = parameters.get(str(named), {})
        place = str(spec.get("vpc")), str(spec.get("vpcSubnet"))
        found.setdefault(place, []).append(network.name)
    return found


def _settings(pool: Record) -> Mapping[str, Any]:
    """The pool's inputs, with the zones and GPUs that GKE filled in."""
    filled = {name: pool.outputs.get(name) for name in ("nodeLocations", "nodeConfig")}
    return {**pool.inputs, **{name: value for name, value in filled.items() if value}}


def _own_pools(cluster: KubeCluster) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Pools of the cluster's own arguments.

    Source: terraform-provider-google, website/docs/r/container_cluster.html.markdown: initial_node_count,
    node_config, node_pool, remove_default_node_pool.
    """
    inputs = cluster.record.inputs
    location = str(cluster.record.outputs.get("location") or "")
    zones = [str(zone) for zone in cluster.record.outputs.get("nodeLocations") or ()]
    if location.count("-") > 1 and location not in zones:  # nodeLocations has its other zones only
        zones.insert(0, location)
    inline = inputs.get("nodePools") or ()
    for pool in inline:
        yield str(pool.get("name") or _DEFAULT_POOL), {"nodeLocations": zones, **pool}
    if not inline and not inputs.get("removeDefaultNodePool"):
        count = inputs.get("initialNodeCount")
        config = inputs.get("nodeConfig")
        yield _DEFAULT_POOL, {"nodeConfig": config, "nodeCount": count, "nodeLocations": zones}


def _members(
    name: str, settings: Mapping[str, Any], networks: Mapping[tuple[str, str], list[str]]
) -> Iterator[SchedulerNode]:
    """The nodes of a pool, zone by zone."""
    config = settings.get("nodeConfig") or {}
    zones = [str(zone) for zone in settings.get("nodeLocations") or ()] or [""]
    running, most = _sizes(settings, len(zones))
    labels, taints = _labels(name, config, settings), tuple(_taints(config, settings))
    extended, capacity = {GPU: Decimal(_gpus(config))}, _capacity(config)
    for attached in (settings.get("networkConfig") or {}).get("additionalNodeNetworkConfigs") or ():
        place = _last(attached.get("network")), _last(attached.get("subnetwork"))
        for network in networks.get(place, ()):
            resource = f"networking.gke.io.networks/{network}"
            extended |= {resource: Decimal(1), f"{resource}.IP": Decimal(1)}
    for index in range(most):
        zone, own = zones[index % len(zones)], f"{name}-{index}"
        yield SchedulerNode(
            name=own,
            group=name,
            labels={**labels, **_places(name, own, zone, config), "kubernetes.io/hostname": own},
            taints=taints,
            capacity=capacity,
            extended=extended,
            running=index < running,
        )


def _last(link: object) -> str:
    return str(link).rpartition("/")[2]


def _sizes(settings: Mapping[str, Any], zones: int) -> tuple[int, int]:
    """Initial and maximum number of nodes; counts are per zone unless their name has `total`."""
    scaling = settings.get("autoscaling") or {}
    given = settings.get("nodeCount")
    running = int((given if given is not None else settings.get("initialNodeCount")) or 0) * zones
    running = max(
        running, int(scaling.get("totalMinNodeCount") or 0), int(scaling.get("minNodeCount") or 0) * zones
    )
    most = int(scaling.get("totalMaxNodeCount") or 0) or int(scaling.get("maxNodeCount") or 0) * zones
    return running, max(running, most)


def _labels(name: str, config: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, str]:
    machine = str(config.get("machineType") or _DEFAULT_MACHINE)
    labels = {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "arm64" if _is_arm(machine) else "amd64",
        "node.kubernetes.io/instance-type": machine,
        f"{_GOOGLE}gke-nodepool": name,
        f"{_GOOGLE}machine-family": machine.partition("-")[0],
        f"{_GOOGLE}gke-os-distribution": "cos",
        f"{_GOOGLE}gke-provisioning": "spot" if config.get("spot") else "standard",
        "iam.gke.io/gke-metadata-server-enabled": "true",
    }
    if config.get("spot"):
        labels[f"{_GOOGLE}gke-spot"] = "true"
    if config.get("flexStart"):
        labels[f"{_GOOGLE}gke-flex-start"] = "true"
    profile = (settings.get("networkConfig") or {}).get("acceleratorNetworkProfile")
    if profile:
        labels["gke.networks.io/accelerator-network-profile"] = str(profile)
    for gpus in config.get("guestAccelerators") or ():
        labels |= _gpu_labels(gpus)
    return labels | {str(key): str(value) for key, value in (config.get("labels") or {}).items()}


def _gpu_labels(gpus: Mapping[str, Any]) -> dict[str, str]:
    labels = {f"{_GOOGLE}gke-accelerator": str(gpus.get("type"))}
    driver = str((gpus.get("gpuDriverInstallationConfig") or {}).get("gpuDriverVersion") or "DEFAULT")
    if driver != _DISABLED:
        labels[f"{_GOOGLE}gke-gpu-driver-version"] = driver.lower()
    if gpus.get("gpuPartitionSize"):
        labels[f"{_GOOGLE}gke-gpu-partition-size"] = str(gpus["gpuPartitionSize"])
    sharing = gpus.get("gpuSharingConfig") or {}
    if sharing:
        strategy = str(sharing.get("gpuSharingStrategy") or "").lower().replace("_", "-")
        labels[f"{_GOOGLE}gke-gpu-sharing-strategy"] = strategy
        labels[f"{_GOOGLE}gke-max-shared-clients-per-gpu"] = str(sharing.get("maxSharedClientsPerGpu"))
    return labels


def _places(pool: str, node: str, zone: str, config: Mapping[str, Any]) -> dict[str, str]:
    """Topology labels of a node: zone and region, and for GPUs with a network of their own their block."""
    if not zone:
        return {}
    places = {
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": zone.rpartition("-")[0],
    }
    if str(config.get("machineType")) in facts.gpu_networks:
        block = f"{pool}-{zone}"
        for level, value in (("block", block), ("subblock", f"{block}-0"), ("host", node)):
            places[f"{_GOOGLE}gce-topology-{level}"] = value
    return places


def _taints(config: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[Taint]:
    """Taints of the inputs, and those that GKE adds."""
    given = [
        Taint(str(row["key"]), str(row.get("value") or ""), _EFFECTS.get(row["effect"], row["effect"]))
        for row in config.get("taints") or ()
    ]
    yield from given
    own = []
    if config.get("guestAccelerators"):
        own.append(Taint(GPU, "present", "NoSchedule"))
    if (settings.get("queuedProvisioning") or {}).get("enabled"):
        own.append(Taint(f"{_GOOGLE}gke-queued", "true", "NoSchedule"))
    if _is_arm(str(config.get("machineType"))):
        own.append(Taint("kubernetes.io/arch", "arm64", "NoSchedule"))
    keys = {taint.key for taint in given}
    yield from (taint for taint in own if taint.key not in keys)


def _gpus(config: Mapping[str, Any]) -> int:
    """Schedulable GPUs of a node: a shared GPU counts once per client."""
    total = 0
    for row in config.get("guestAccelerators") or ():
        driver = (row.get("gpuDriverInstallationConfig") or {}).get("gpuDriverVersion")
        gpu = facts.accelerators.get(str(row.get("type")))
        parts = gpu.mig.get(str(row.get("gpuPartitionSize")), 1) if gpu else 1
        clients = int((row.get("gpuSharingConfig") or {}).get("maxSharedClientsPerGpu") or 1)
        total += 0 if driver == _DISABLED else int(row.get("count") or 0) * parts * clients
    return total


def _capacity(config: Mapping[str, Any]) -> dict[str, Decimal]:
    """CPU and memory of a machine type; nothing when it is not in the catalog."""
    name = str(config.get("machineType") or _DEFAULT_MACHINE)
    known = facts.machine_types.get(name) or facts.cpu_type(name)
    if known is None:
        return {}
    return {"cpu": Decimal(known.vcpu), "memory": Decimal(known.memory_gib) * 2**30}


def _is_arm(machine: str) -> bool:
    known = facts.machine_types.get(machine)
    return known.architecture == "arm64" if known else machine.startswith(("c4a-", "n4a-", "t2a-"))
