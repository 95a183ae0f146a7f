"""Reservations that pools consume: names and machines."""

from collections.abc import Iterator

from rehearsal.core.model import Properties, Record
from rehearsal.core.properties import at
from rehearsal.core.rules.model import Violation
from rehearsal.gcp.rules.book import BOOK, ProjectView, block, items
from rehearsal.gcp.sizes import POOL, nodes

_AFFINITY = "nodeConfig.reservationAffinity"
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


def _held(inputs: Properties, world: ProjectView) -> Iterator[tuple[str, Record, Properties]]:
    """(path, reservation, properties of its machines) of reservations of this project's programs."""
    for path, value in _named(inputs):
        parts = value.split("/")
        if parts[0] == "projects" and parts[1] != world.project:
            continue
        name = parts[parts.index("reservations") + 1] if "reservations" in parts else parts[0]
        for one in world.others("compute/reservation:Reservation"):
            if one.name == name:
                yield path, one, block(one.inputs.get("specificReservation"), "instanceProperties")


def _disks(inputs: Properties) -> int | None:
    """Local SSDs of a pool; None where it does not set them."""
    node = block(inputs.get("nodeConfig"))
    for name in ("ephemeralStorageLocalSsdConfig", "localNvmeSsdBlockConfig"):
        count = block(node.get(name)).get("localSsdCount")
        if isinstance(count, int | float):
            return int(count)
    return None
