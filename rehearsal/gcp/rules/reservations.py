"""Reservations that pools consume: names and machines."""

from collections.abc import Iterator

from rehearsal.core.model import Properties, Record
from rehearsal.core.properties import at
from rehearsal.core.rules.model import Violation
from rehearsal.gcp.rules.book import BOOK, ProjectView, block, items
from rehearsal.gcp.sizes import POOL, nodes

_AFFINITY = "nodeConfig.reservationAffinity"
_RESERVATION = "compute/reservation:Reservation"
_SHORT = "Reservation does not have enough resources for the request"


def _named(inputs: Properties) -> Iterator[tuple[str, str]]:
    """(path, value) of every reservation of a pool."""
    for index, value in enumerate(items(at(inputs, f"{_AFFINITY}.values"))):
        if isinstance(value, str):
            yield f"{_AFFINITY}.values[{index}]", value


@BOOK.rule(
    "GCP-POOL-021",
    POOL,
    source="GoogleCloudPlatform/cluster-toolkit issue 5043 (a block of a reservation needs its full path)",
)
def _full_path(inputs: Properties) -> Iterator[Violation]:
    """A block of a reservation is named by its full path."""
    for path, value in _named(inputs):
        if "/reservationBlocks/" in value and not value.startswith("projects/"):
            yield Violation(
                path,
                f'Error 404: Not found: reservation "{value}" not found for node pool',
                "Write projects/PROJECT/reservations/NAME/reservationBlocks/BLOCK.",
                "notFound",
            )


@BOOK.rule_around(
    "GCP-POOL-022",
    POOL,
    source="GoogleCloudPlatform/gsutil issue 1000 (text); cluster-toolkit@10470803: gke-node-pool/README.md "
    "(a reservation fits only if machine and local SSDs match)",
)
def _fits(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A pool is of the machines that its reservation holds."""
    for path, _, held in _held(inputs, world):
        machine, wanted = held.get("machineType"), at(inputs, "nodeConfig.machineType")
        if isinstance(machine, str) and isinstance(wanted, str) and machine != wanted:
            yield Violation(path, f"{_SHORT}: it holds {machine}, not {wanted}", "", "badRequest")
            continue
        disks, wanted = held.get("localSsds"), _disks(inputs)
        if isinstance(disks, list) and disks and wanted is not None and len(disks) != wanted:
            message = f"{_SHORT}: its machines have {len(disks)} local SSDs, the pool asks for {wanted}"
            yield Violation(path, message, "", "badRequest")


@BOOK.rule_around("GCP-POOL-023", POOL, source="GoogleCloudPlatform/gsutil issue 1000 (short of 1 VM count)")
def _enough(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A pool starts no more nodes than its reservation has machines."""
    location = str(inputs.get("location") or world.places.get("location") or "")
    for path, reservation, _ in _held(inputs, world):
        count = at(reservation.inputs, "specificReservation.count")
        wanted = nodes(POOL, inputs, location)
        if isinstance(count, int | float) and wanted > count:
            short = wanted - int(count)
            yield Violation(path, f"{_SHORT}, short of {short} VM count", "", "badRequest")


@BOOK.rule_around(
    "GCP-POOL-030",
    POOL,
    source="GoogleCloudPlatform/cluster-toolkit issues 5043 (text), 2548 (reservation of another project); "
    "Compute Engine documentation, Consume reserved instances (zone, sharing)",
)
def _reachable(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A reservation is in every zone of the pool, and shared with its project where another one has it."""
    location = str(inputs.get("location") or world.places.get("location") or "")
    # Without names GKE chooses zones of the region.
    zones = [str(zone) for zone in items(inputs.get("nodeLocations"))] or [location]
    zones = [zone for zone in zones if zone.count("-") > 1]
    for path, value in _named(inputs):
        owner, name = _owner(value, world), _name(value)
        made = [one for one in world.others(_RESERVATION) if one.name == name]
        for zone in zones:
            if owner != world.project:
                found = world.find(f"projects/{owner}/zones/{zone}/reservations/{name}", _RESERVATION)
                missing = found is not None and not _is_shared(found, world)
            else:
                missing = bool(made) and zone not in [one.outputs.get("zone") for one in made]
            if missing:
                pool = inputs.get("name")
                text = f'reservation "{name}" not found for node pool "{pool}" at zone "{zone}".'
                fix = "Name a reservation of the zone that is shared with the project."
                yield Violation(path, f"Error 404: Google Compute Engine: {text}", fix, "notFound")


def _is_shared(found: Record, world: ProjectView) -> bool:
    rows = items(at(found.inputs, "shareSettings.projectMaps"))
    given = {str(row.get(key)) for row in rows for key in ("id", "projectId")}
    return bool({world.project, world.number} & given)


def _owner(value: str, world: ProjectView) -> str:
    return value.split("/")[1] if value.startswith("projects/") else world.project


def _name(value: str) -> str:
    parts = value.split("/")
    return parts[parts.index("reservations") + 1] if "reservations" in parts else parts[0]


def _held(inputs: Properties, world: ProjectView) -> Iterator[tuple[str, Record, Properties]]:
    """(path, reservation, properties of its machines) of reservations of this project's programs."""
    for path, value in _named(inputs):
        if _owner(value, world) != world.project:
            continue
        for one in world.others(_RESERVATION):
            if one.name == _name(value):
                yield path, one, block(one.inputs.get("specificReservation"), "instanceProperties")


def _disks(inputs: Properties) -> int | None:
    """Local SSDs of a pool; None where it does not set them."""
    node = block(inputs.get("nodeConfig"))
    for name in ("ephemeralStorageLocalSsdConfig", "localNvmeSsdBlockConfig"):
        count = block(node.get(name)).get("localSsdCount")
        if isinstance(count, int | float):
            return int(count)
    return None
