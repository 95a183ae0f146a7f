"""GKE clusters."""

from collections.abc import Iterator

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import at
from rehearsal.core.rules.model import Violation
from rehearsal.gcp import facts
from rehearsal.gcp.rules.book import BOOK, ProjectView, block, items
from rehearsal.gcp.rules.networks import parse

CLUSTER = "gcp:container/cluster:Cluster"
_CODE = (
    "hashicorp/terraform-provider-google@e03b7622: google/services/container/resource_container_cluster.go"
)
_DOCS = "hashicorp/terraform-provider-google@e03b7622: website/docs/r/container_cluster"
_TOOLKIT = "GoogleCloudPlatform/cluster-toolkit@10470803: modules/scheduler/gke-cluster/main.tf"


def _dataplane(inputs: Properties) -> str | None:
    """The datapath of a cluster, None while it is unknown."""
    value = inputs.get("datapathProvider", "LEGACY_DATAPATH")
    if inputs.get("enableAutopilot"):
        return "ADVANCED_DATAPATH"
    return value if isinstance(value, str) else None


@BOOK.rule("GCP-GKE-002", CLUSTER, source=_TOOLKIT)
def _multi_networking(inputs: Properties) -> Iterator[Violation]:
    """Multi-networking needs Dataplane V2."""
    if inputs.get("enableMultiNetworking") is True and _dataplane(inputs) == "LEGACY_DATAPATH":
        yield Violation(
            "datapathProvider", "must be ADVANCED_DATAPATH when enableMultiNetworking is set", "Dataplane V2."
        )


@BOOK.rule(
    "GCP-GKE-030",
    CLUSTER,
    source="GKE documentation, Set up multi-network support for Pods (not with managed Hubble); metrics are "
    "on in every Autopilot cluster, which supports multi-networking (Configure Dataplane V2 observability)",
)
def _hubble(inputs: Properties) -> Iterator[Violation]:
    """Multi-networking excludes the relay of Dataplane V2 observability, but not its metrics."""
    path = "monitoringConfig.advancedDatapathObservabilityConfig"
    if inputs.get("enableMultiNetworking") is True and at(inputs, f"{path}.enableRelay") is True:
        yield Violation(f"{path}.enableRelay", "cannot be used with enableMultiNetworking", "Leave it out.")


@BOOK.rule("GCP-GKE-004", CLUSTER, source=_TOOLKIT)
def _fqdn(inputs: Properties) -> Iterator[Violation]:
    """Policies on domain names need Dataplane V2."""
    if inputs.get("enableFqdnNetworkPolicy") is True and _dataplane(inputs) == "LEGACY_DATAPATH":
        yield Violation("enableFqdnNetworkPolicy", "requires datapathProvider ADVANCED_DATAPATH")


@BOOK.rule_around("GCP-GKE-006", CLUSTER, source=f"{_DOCS} (master_ipv4_cidr_block)")
def _master_overlap(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The range of a private control plane overlaps no range of the cluster's network."""
    path = "privateClusterConfig.masterIpv4CidrBlock"
    mine = parse(at(inputs, path))
    network = world.find(inputs.get("network"), "compute/network:Network")
    if mine is None or network is None:
        return
    for subnetwork in world.others("compute/subnetwork:Subnetwork"):
        if world.find(subnetwork.inputs.get("network"), "compute/network:Network") != network:
            continue
        secondary = [
            block(one).get("ipCidrRange") for one in items(subnetwork.inputs.get("secondaryIpRanges"))
        ]
        for value in (subnetwork.inputs.get("ipCidrRange"), *secondary):
            theirs = parse(value)
            if theirs is not None and mine.overlaps(theirs):
                yield Violation(
                    path, f"{mine} overlaps {theirs} of subnetwork {subnetwork.name}", "", "badRequest"
                )


@BOOK.rule_around("GCP-GKE-009", CLUSTER, source=f"{_DOCS} (cluster_secondary_range_name: an existing range)")
def _secondary(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """Secondary ranges that a cluster names exist in its subnetwork."""
    subnetwork = world.find(inputs.get("subnetwork"), "compute/subnetwork:Subnetwork")
    if subnetwork is None:
        return
    ranges = {block(one).get("rangeName") for one in items(subnetwork.inputs.get("secondaryIpRanges"))}
    for name in ("clusterSecondaryRangeName", "servicesSecondaryRangeName"):
        value = block(inputs.get("ipAllocationPolicy")).get(name)
        if isinstance(value, str) and value not in ranges:
            yield Violation(
                f"ipAllocationPolicy.{name}",
                f'Pod secondary range "{value}" does not exist in subnetwork "{subnetwork.name}"',
                f"It has {', '.join(sorted(map(str, ranges))) or 'none'}.",
                "badRequest",
            )


@BOOK.rule_around("GCP-GKE-010", CLUSTER, source=f"{_DOCS} (workload_pool)")
def _workload_pool(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The workload pool is that of the project."""
    pool = block(inputs.get("workloadIdentityConfig")).get("workloadPool")
    if isinstance(pool, str) and pool and pool != f"{world.project}.svc.id.goog":
        yield Violation(
            "workloadIdentityConfig.workloadPool",
            f"{pool} is not the pool of this project",
            f"Use {world.project}.svc.id.goog.",
            "badRequest",
        )


@BOOK.rule("GCP-GKE-011", CLUSTER, source=f"{_DOCS} (initial_node_count)")
def _initial_nodes(inputs: Properties) -> Iterator[Violation]:
    """A cluster is created with nodes, even if its default pool is then removed."""
    if inputs.get("enableAutopilot") or UNKNOWN in (inputs.get("initialNodeCount"), inputs.get("nodePools")):
        return
    if not inputs.get("initialNodeCount") and not inputs.get("nodePools"):
        yield Violation(
            "initialNodeCount",
            "must be set to at least 1 when there is no nodePools block, alongside removeDefaultNodePool",
        )


@BOOK.rule("GCP-GKE-014", CLUSTER, source=f"{_DOCS} (node_locations)")
def _node_locations(inputs: Properties) -> Iterator[Violation]:
    """Nodes are in the region of the cluster."""
    location = inputs.get("location")
    if not isinstance(location, str):
        return
    region = facts.region_of(location)
    for index, zone in enumerate(items(inputs.get("nodeLocations"))):
        if isinstance(zone, str) and zone.rpartition("-")[0] != region:
            yield Violation(
                f"nodeLocations[{index}]", f"{zone} is not in {region}, the region of the cluster"
            )


@BOOK.rule("GCP-GKE-015", CLUSTER, source=f"{_DOCS} (cluster_autoscaling.enabled)")
def _provisioning(inputs: Properties) -> Iterator[Violation]:
    """Node auto-provisioning needs limits for CPU and memory."""
    scaling = block(inputs.get("clusterAutoscaling"))
    limits = scaling.get("resourceLimits")
    if scaling.get("enabled") is True and not inputs.get("enableAutopilot") and limits is not UNKNOWN:
        given = {block(one).get("resourceType") for one in items(limits)}
        missing = [name for name in ("cpu", "memory") if name not in given and UNKNOWN not in given]
        if missing:
            yield Violation(
                "clusterAutoscaling.resourceLimits", f"limits for {' and '.join(missing)} are missing"
            )
