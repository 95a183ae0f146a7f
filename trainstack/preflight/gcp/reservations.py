"""Reserved capacity that pools name: whether it exists, is ready, and is what the pool's nodes run on."""

from collections.abc import Iterator
from datetime import datetime

from infra.catalog.gcp import facts
from infra.catalog.gcp.pools import PREPAID, Reservation, reservation
from infra.stackspec.layouts import PoolSpec
from infra.stackspec.purchases import CapacityBlock
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.blocks import differing_times
from trainstack.preflight.gcp.project import Project, Row
from trainstack.preflight.gcp.use import last

_CHECK = "reservations"
# Of a future reservation, as Compute Engine calls its states; others are steps on the way to its start.
_OVER = ("CANCELLED", "DECLINED", "FAILED")


def capacity(project: Project) -> Iterator[Answer]:
    """Each reservation matches its pool, is ready, and is large enough."""
    for index, pool in enumerate(project.machines.pools):
        if pool.purchase.kind in PREPAID:
            yield from _pool(project, f"layout.pools[{index}]", pool, pool.purchase.id)


def _pool(project: Project, path: str, pool: PoolSpec, id: str) -> Iterator[Answer]:
    one = reservation(id)
    if one is None:
        message = f"{path}: {id} is not the full name of a reservation"
        yield Answer(_CHECK, State.SHORT, message, "Write projects/<project>/reservations/<name>.")
        return
    zone, found = _found(project, one, pool)
    if found is None:
        yield from _future(project, path, pool, one)
        return
    wrong = list(_differences(project, pool, one, zone, found))
    if one.block:
        wrong += _block(project, pool, one, zone)
    fix = "Name another reservation, wait until it is ready, or change the pool to match it."
    for message in wrong:
        yield Answer(_CHECK, State.SHORT, f"{path}: {one} {message}", fix)
    if wrong:
        return
    specific = found["specificReservation"]
    free = int(specific.get("count", 0)) - int(specific.get("inUseCount", 0))
    until = f", until {found['deleteAtTime']}" if found.get("deleteAtTime") else ""
    message = f"{path}: {one} is ready in {zone}{until}; {free} of {specific['count']} machines are free"
    yield Answer(_CHECK, State.READY, message)


def _found(project: Project, one: Reservation, pool: PoolSpec) -> tuple[str, Row | None]:
    """The reservation and its zone; None where no zone of the pool has it."""
    for zone in pool.zones:
        asked = {"project": one.project, "zone": zone, "reservation": one.name}
        row = project.found("compute.reservations.get", **asked)
        if row is not None:
            return zone, row
    return "", None


def _future(project: Project, path: str, pool: PoolSpec, one: Reservation) -> Iterator[Answer]:
    """The answer for a reservation that a future reservation may create at its start."""
    zones = ", ".join(pool.zones)
    if isinstance(pool.purchase, CapacityBlock):
        for zone in pool.zones:
            asked = {"project": one.project, "zone": zone}
            for row in project.items("compute.futureReservations.list", "items", **asked):
                if _makes(row, one.name):
                    status = str((row.get("status") or {}).get("procurementStatus", "unknown"))
                    start = (row.get("timeWindow") or {}).get("startTime", "an unknown time")
                    window = row.get("timeWindow") or {}
                    wrong = differing_times(
                        pool.purchase, _time(window.get("startTime")), _time(window.get("endTime"))
                    )
                    other = "".join(f"; it {each}" for each in wrong)
                    message = f"{path}: {one} does not exist yet: {row['name']} is {status.lower()}{other}"
                    fix = f"It begins at {start}: no node of the pool starts before."
                    if status in _OVER:
                        fix = "Reserve again, and name the new reservation."
                    yield Answer(_CHECK, State.SHORT, message, fix)
                    return
    fix = f"gcloud compute reservations list --project={one.project} lists the existing ones."
    yield Answer(_CHECK, State.SHORT, f"{path}: {one} does not exist in {zones}", fix)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _makes(row: Row, name: str) -> bool:
    """Return whether a future reservation creates the reservation of a name, by name or prefix."""
    made = [last(one) for one in (row.get("status") or {}).get("autoCreatedReservations") or ()]
    prefix = row.get("namePrefix")
    return name in (*made, row.get("reservationName"), row["name"]) or bool(
        prefix and name.startswith(prefix)
    )


def unusable(project: Project, owner: str, machine: str, found: Row) -> Iterator[str]:
    """The reasons why the stack cannot use machines of a type in a reservation of the project `owner`."""
    if found.get("status") != "READY":
        yield f"is {str(found.get('status', 'unknown')).lower()}"
    if owner != project.on.project and not _shared(project, found):
        yield f"is not shared with {project.on.project}"
    if not found.get("specificReservationRequired"):
        yield "can be consumed by any machine: it was created without --require-specific-reservation"
    specific = found.get("specificReservation")
    if not specific:
        yield "reserves no machines of one type"
        return
    held = (specific.get("instanceProperties") or {}).get("machineType")
    if held != machine:
        yield f"holds {held}, not {machine}"


def _differences(project: Project, pool: PoolSpec, one: Reservation, zone: str, found: Row) -> Iterator[str]:
    yield from unusable(project, one.project, pool.machine, found)
    specific = found.get("specificReservation")
    if not specific:
        return
    what = specific.get("instanceProperties") or {}
    if pool.purchase.kind == "block" and not found.get("deleteAtTime"):
        yield "has no end: its purchase is `reserved`"
    if isinstance(pool.purchase, CapacityBlock):
        yield from differing_times(pool.purchase, None, _time(found.get("deleteAtTime")))
    if int(specific.get("count", 0)) < pool.max_nodes:
        yield f"holds {specific.get('count', 0)} machines, the pool can grow to {pool.max_nodes}"
    yield from _gpus(pool, what)
    yield from _disks(project, pool, zone, what)


def _gpus(pool: PoolSpec, what: Row) -> Iterator[str]:
    machine, rows = facts.machine_types.get(pool.machine), what.get("guestAccelerators") or ()
    if machine is None or not rows:
        return  # a type with built-in GPUs need not list them
    found = {last(row.get("acceleratorType")): int(row.get("acceleratorCount", 0)) for row in rows}
    if found != {machine.accelerator: machine.count}:
        named = ", ".join(f"{count} {name}" for name, count in found.items())
        yield f"holds {named} in each machine, {pool.machine} has {machine.count} {machine.accelerator}"


def _disks(project: Project, pool: PoolSpec, zone: str, what: Row) -> Iterator[str]:
    """Machines match only with the same local SSDs (GoogleCloudPlatform/cluster-toolkit gke-node-pool)."""
    asked = project.pool(pool.name).local_ssds
    wanted = asked if asked is not None else _bundled(project, pool, zone)
    disks = what.get("localSsds") or ()
    if wanted is None:
        return
    if len(disks) != wanted:
        yield f"has {len(disks)} local SSDs in each machine, the nodes of the pool have {wanted}"
    other = sorted({str(disk.get("interface", "SCSI")) for disk in disks} - {"NVME"})
    if other:
        yield f"has local SSDs with {other[0]}, those of GKE's nodes have NVME"


def _bundled(project: Project, pool: PoolSpec, zone: str) -> int | None:
    """The local SSDs that a machine type always has; None where the API does not report them."""
    named = f'(name = "{pool.machine}")'
    for place, row in project.everywhere("compute.machineTypes.aggregatedList", "machineTypes", filter=named):
        if place == zone and row["name"] == pool.machine and row.get("bundledLocalSsds"):
            return int(row["bundledLocalSsds"].get("partitionCount", 0))
    return None


def _shared(project: Project, found: Row) -> bool:
    settings = found.get("shareSettings") or {}
    return settings.get("shareType") == "ORGANIZATION" or bool(
        {project.on.project, project.number} & {*(settings.get("projectMap") or {})}
    )


def _block(project: Project, pool: PoolSpec, one: Reservation, zone: str) -> Iterator[str]:
    asked = {"project": one.project, "zone": zone, "reservation": one.name, "reservationBlock": one.block}
    answer = project.found("compute.reservationBlocks.get", **asked)
    if answer is None:
        yield f"does not exist: {one.name} has no such block"
        return
    row = answer["resource"]
    if row.get("status") != "READY":
        yield f"is {str(row.get('status', 'unknown')).lower()}"
    if int(row.get("count", 0)) < pool.max_nodes:
        yield f"holds {row.get('count', 0)} machines, the pool can grow to {pool.max_nodes}"
