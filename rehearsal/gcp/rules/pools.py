"""GKE node pools: placement, reservations, DWS flex-start and queued provisioning, autoscaling, upgrades."""

import re
from collections.abc import Iterator

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.gcp.facts import catalog, region_of
from rehearsal.gcp.rules.book import BOOK, ProjectView, block, items, present
from rehearsal.gcp.sizes import market

POOL = "gcp:container/nodePool:NodePool"
_DOCS = "hashicorp/terraform-provider-google@e03b7622: website/docs/r/container_node_pool"
_TOOLKIT = "GoogleCloudPlatform/cluster-toolkit@10470803: modules/compute/gke-node-pool/main.tf"
_FLEX_COMPACT = re.compile(r"a3-ultragpu-|a4-|h4d-")


def _node(inputs: Properties) -> Properties:
    return block(inputs.get("nodeConfig"))


def _compact(inputs: Properties) -> bool:
    policy = block(inputs.get("placementPolicy"))
    return policy.get("type") == "COMPACT" and not policy.get("tpuTopology")


def _queued(inputs: Properties) -> bool:
    return block(inputs.get("queuedProvisioning")).get("enabled") is True


def _flex(inputs: Properties) -> bool:
    return _node(inputs).get("flexStart") is True


def _reservation(inputs: Properties) -> object:
    """Reservation use of the pool; UNKNOWN while not known, the default when absent."""
    affinity = _node(inputs).get("reservationAffinity")
    if affinity is UNKNOWN:
        return UNKNOWN
    return block(affinity).get("consumeReservationType", "UNSPECIFIED")


def _wants_no_reservation(inputs: Properties, why: str) -> Iterator[Violation]:
    found = _reservation(inputs)
    if found is not UNKNOWN and found != "NO_RESERVATION":
        yield Violation(
            "nodeConfig.reservationAffinity.consumeReservationType",
            f"must be NO_RESERVATION {why}, not {found}",
        )


@BOOK.rule("GCP-POOL-001", POOL, source=_TOOLKIT)
def _compact_zone(inputs: Properties) -> Iterator[Violation]:
    """Compact placement works in a single zone."""
    # A pool without zones has those of its cluster, which may be a single one.
    if _compact(inputs) and len(items(inputs.get("nodeLocations"))) > 1:
        yield Violation(
            "nodeLocations", "compact placement is only available in a single zone", "Give one zone."
        )


@BOOK.rule("GCP-POOL-002", POOL, source=_TOOLKIT)
def _compact_upgrade(inputs: Properties) -> Iterator[Violation]:
    """Compact placement does not go with blue-green upgrades."""
    if _compact(inputs) and block(inputs.get("upgradeSettings")).get("strategy") == "BLUE_GREEN":
        yield Violation("upgradeSettings.strategy", "BLUE_GREEN is not supported with compact placement")


@BOOK.rule("GCP-POOL-003", POOL, source=_TOOLKIT)
def _compact_queued(inputs: Properties) -> Iterator[Violation]:
    """Compact placement does not go with queued provisioning, unless for TPUs."""
    if _compact(inputs) and _queued(inputs):
        yield Violation("placementPolicy.type", "cannot be COMPACT when queuedProvisioning is enabled")


@BOOK.rule("GCP-POOL-004", POOL, source=_TOOLKIT)
def _queued_reservation(inputs: Properties) -> Iterator[Violation]:
    """Queued provisioning uses no reservation."""
    if _queued(inputs):
        yield from _wants_no_reservation(inputs, "with queued provisioning")


@BOOK.rule("GCP-POOL-005", POOL, source=_TOOLKIT)
def _queued_minimum(inputs: Properties) -> Iterator[Violation]:
    """A pool with queued provisioning starts from no node."""
    scaling = block(inputs.get("autoscaling"))
    for name in ("minNodeCount", "totalMinNodeCount"):
        if _queued(inputs) and isinstance(scaling.get(name), int | float) and scaling[name] > 0:
            yield Violation(f"autoscaling.{name}", "must be 0 with queued provisioning")


@BOOK.rule("GCP-POOL-006", POOL, source=_TOOLKIT)
def _queued_spot(inputs: Properties) -> Iterator[Violation]:
    """Queued provisioning and spot exclude each other."""
    if _queued(inputs) and _node(inputs).get("spot") is True:
        yield Violation("nodeConfig.spot", "cannot be set together with queued provisioning")


@BOOK.rule("GCP-POOL-007", POOL, source=_TOOLKIT)
def _flex_repair(inputs: Properties) -> Iterator[Violation]:
    """Flex-start nodes are not repaired automatically."""
    management = inputs.get("management")
    repair = block(management).get("autoRepair", True)
    if _flex(inputs) and management is not UNKNOWN and repair is True:
        yield Violation(
            "management.autoRepair", "must be false with nodeConfig.flexStart (it is on by default)"
        )


@BOOK.rule("GCP-POOL-008", POOL, source=_TOOLKIT)
def _flex_static(inputs: Properties) -> Iterator[Violation]:
    """Flex-start does not work with a fixed number of nodes."""
    count = inputs.get("nodeCount")
    if _flex(inputs) and isinstance(count, int | float) and count > 0:
        yield Violation("nodeCount", "does not work with nodeConfig.flexStart", "Use autoscaling from 0.")


@BOOK.rule("GCP-POOL-009", POOL, source=_TOOLKIT)
def _flex_reservation(inputs: Properties) -> Iterator[Violation]:
    """Flex-start uses no reservation."""
    if _flex(inputs) and not _queued(inputs):
        yield from _wants_no_reservation(inputs, "with flex-start")


@BOOK.rule("GCP-POOL-010", POOL, source=_TOOLKIT)
def _flex_spot(inputs: Properties) -> Iterator[Violation]:
    """Flex-start and spot exclude each other."""
    if _flex(inputs) and _node(inputs).get("spot") is True:
        yield Violation("nodeConfig.spot", "cannot be set together with flexStart")


@BOOK.rule("GCP-POOL-011", POOL, source=_TOOLKIT)
def _flex_compact(inputs: Properties) -> Iterator[Violation]:
    """Compact placement with flex-start is for A3 Ultra, A4 and H4D only."""
    machine = _node(inputs).get("machineType")
    if _flex(inputs) and _compact(inputs) and isinstance(machine, str) and not _FLEX_COMPACT.match(machine):
        yield Violation(
            "placementPolicy.type",
            f"COMPACT with flex-start is not supported for {machine} (A3 Ultra, A4, H4D)",
        )


@BOOK.rule("GCP-POOL-012", POOL, source=_TOOLKIT)
def _spot_reservation(inputs: Properties) -> Iterator[Violation]:
    """Spot nodes take no reservation."""
    kind = _reservation(inputs)
    if _node(inputs).get("spot") is True and kind in ("SPECIFIC_RESERVATION", "ANY_RESERVATION"):
        yield Violation(
            "nodeConfig.reservationAffinity.consumeReservationType", f"{kind} cannot be used by spot nodes"
        )


@BOOK.rule_around("GCP-POOL-014", POOL, source=_TOOLKIT)
def _reservation_is_specific(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A specific reservation can only be used by those who name it."""
    affinity = block(_node(inputs).get("reservationAffinity"))
    for index, value in enumerate(items(affinity.get("values"))):
        if not isinstance(value, str):
            continue
        path = f"nodeConfig.reservationAffinity.values[{index}]"
        parts = value.split("/")
        if parts[0] == "projects" and parts[1] != world.project:
            continue
        name = parts[parts.index("reservations") + 1] if "reservations" in parts else parts[0]
        # Many are bought outside of programs: an unknown one may still exist.
        found = [one for one in world.others("compute/reservation:Reservation") if one.name == name]
        if found and not found[0].inputs.get("specificReservationRequired"):
            yield Violation(path, f"the consumption type of {name} is not specific", "", "badRequest")


@BOOK.rule("GCP-POOL-015", POOL, source=f"{_DOCS} (autoscaling)")
def _limits(inputs: Properties) -> Iterator[Violation]:
    """Autoscaling is limited in total or per zone, not both."""
    scaling = block(inputs.get("autoscaling"))
    total = present(scaling, "totalMinNodeCount", "totalMaxNodeCount")
    zonal = present(scaling, "minNodeCount", "maxNodeCount")
    if total and zonal:
        yield Violation(f"autoscaling.{zonal[0]}", f"cannot be used with {total[0]}")


@BOOK.rule("GCP-POOL-016", POOL, source=f"{_DOCS} (autoscaling)")
def _minimum(inputs: Properties) -> Iterator[Violation]:
    """The least number of nodes is not above the most."""
    scaling = block(inputs.get("autoscaling"))
    for low, high in (("minNodeCount", "maxNodeCount"), ("totalMinNodeCount", "totalMaxNodeCount")):
        least, most = scaling.get(low), scaling.get(high)
        if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
            yield Violation(f"autoscaling.{low}", f"{int(least)} is above {high} {int(most)}")


@BOOK.rule("GCP-POOL-017", POOL, source=f"{_DOCS} (upgrade_settings)")
def _surge(inputs: Properties) -> Iterator[Violation]:
    """An upgrade needs a node more or may miss one."""
    settings = block(inputs.get("upgradeSettings"))
    if settings.get("maxSurge") == 0 and settings.get("maxUnavailable", 0) == 0:
        yield Violation("upgradeSettings.maxSurge", "maxSurge or maxUnavailable must be greater than 0")


@BOOK.rule("GCP-POOL-019", POOL, source=_TOOLKIT)
def _disks(inputs: Properties) -> Iterator[Violation]:
    """Local SSDs are used for ephemeral storage or as raw blocks."""
    node = _node(inputs)
    both = [
        block(node.get(name)).get("localSsdCount")
        for name in ("ephemeralStorageLocalSsdConfig", "localNvmeSsdBlockConfig")
    ]
    if all(isinstance(count, int | float) and count > 0 for count in both):
        yield Violation(
            "nodeConfig.localNvmeSsdBlockConfig.localSsdCount",
            "conflicts with ephemeralStorageLocalSsdConfig",
        )


@BOOK.rule_around("GCP-POOL-020", POOL, source=f"{_DOCS} (node_locations)")
def _pool_zones(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """Nodes are in the region of the cluster, or in its zone's region."""
    cluster = world.find(inputs.get("cluster"), "container/cluster:Cluster")
    if cluster is None:
        return
    region = region_of(str(cluster.outputs.get("location")))
    for index, zone in enumerate(items(inputs.get("nodeLocations"))):
        if isinstance(zone, str) and zone.rpartition("-")[0] != region:
            yield Violation(
                f"nodeLocations[{index}]",
                f"{zone} is not in {region}, the region of the cluster",
                "",
                "badRequest",
            )


@BOOK.rule(
    "GCP-POOL-026",
    POOL,
    source="Compute Engine documentation, Accelerator-optimized machine family (notes of the series)",
)
def _sold(inputs: Properties) -> Iterator[Violation]:
    """Machine types are sold in some ways only; a reservation of any name can serve the others."""
    machine, way = _node(inputs).get("machineType"), market(inputs)
    if not isinstance(machine, str) or _reservation(inputs) in (UNKNOWN, "ANY_RESERVATION"):
        return
    if machine in catalog().sales and catalog().sold(machine, way) is False:
        ways = ", ".join(catalog().ways(machine))
        yield Violation("nodeConfig.machineType", f"{machine} is not sold {way}", f"It is sold {ways}.")


@BOOK.rule(
    "GCP-POOL-027",
    POOL,
    source='Compute Engine documentation, "About Local SSD disks" (numbers of disks by machine type)',
)
def _local_ssds(inputs: Properties) -> Iterator[Violation]:
    """A machine type has a number of local SSDs that it supports."""
    known = catalog().machine_types.get(str(_node(inputs).get("machineType")))
    for name in ("ephemeralStorageLocalSsdConfig", "localNvmeSsdBlockConfig"):
        count = block(_node(inputs).get(name)).get("localSsdCount")
        if known is None or not isinstance(count, int | float) or not known.local_ssd_counts:
            continue
        if count not in known.local_ssd_counts:
            allowed = " or ".join(map(str, known.local_ssd_counts))
            yield Violation(
                f"nodeConfig.{name}.localSsdCount",
                f"{known.name} does not support {count:g}",
                f"Give {allowed}.",
            )
