"""The present use of the project's quotas, without that of the stack itself."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from infra.catalog.gcp import facts
from infra.catalog.gcp.quotas import taken
from trainstack.preflight.gcp.project import Project, Row

# States of machines that use no quota of GPUs and vCPUs.
_STOPPED = ("TERMINATED", "STOPPED", "SUSPENDED", "DEPROVISIONING")
_PREEMPTIBLE = ("SPOT", "FLEX_START")
_SSD = ("pd-ssd", "pd-balanced")
_ENTERPRISE = ("ENTERPRISE", "REGIONAL", "ZONAL")


def last(url: object) -> str:
    """The name at the end of a resource URL of Compute Engine."""
    return str(url).rpartition("/")[2]


@dataclass(frozen=True)
class _Machines:
    zone: str
    type: str
    row: Row
    preemptible: bool
    number: int = 1

    def takes(self, here: bool) -> Iterator[tuple[str, float]]:
        """(quota, amount) of GPUs and vCPUs; outside of the stack's region only in all regions together."""
        gpus = {
            last(one.get("acceleratorType")): int(one.get("acceleratorCount", 0))
            for one in self.row.get("guestAccelerators") or ()
        }
        for key, amount in taken(self.type, gpus, self.number, preemptible=self.preemptible):
            if here or not facts.quotas[key].regional:
                yield key, amount


class Use:
    """The use of each quota by others; data that several quotas need is requested once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._counted: Mapping[str, Callable[[], float]] = {
            "networks": self._networks,
            "in_use_addresses": self._addresses,
            "ssd_total_gb": self._ssd,
            "filestore_gib": self._filestore,
        }

    def of(self, key: str) -> float:
        """The use, in the unit of the quota. Raises ApiRequestError."""
        return self._counted[key]() if key in self._counted else self._machines.get(key, 0.0)

    def _networks(self) -> float:
        """Networks have no labels: those of a stack begin with its name."""
        rows = self._project.items("compute.networks.list", "items", project=self._project.on.project)
        starts = tuple(f"{name}-" for name in self._project.names)
        return float(sum(not f"{row['name']}-".startswith(starts) for row in rows))

    def _addresses(self) -> float:
        """Static and automatic ones that are in use, and those that machines borrow."""
        found: set[str] = set()
        for place, row in self._project.everywhere("compute.addresses.aggregatedList", "addresses"):
            external = row.get("addressType", "EXTERNAL") == "EXTERNAL" and row.get("status") == "IN_USE"
            if place == self._project.spec.region and external and not self._of_stack(row):
                found.add(str(row["address"]))
        for zone, row in self._instances:
            if self._here(zone) and not self._project.shares(row.get("labels")):
                for nic in row.get("networkInterfaces") or ():
                    found |= {str(one["natIP"]) for one in nic.get("accessConfigs") or () if one.get("natIP")}
        return float(len(found))

    def _of_stack(self, row: Row) -> bool:
        """Addresses that Cloud NAT allocated have no labels, but the name of its router."""
        start = tuple(f"{name}-" for name in self._project.names)
        return self._project.shares(row.get("labels")) or any(
            last(user).startswith(start) for user in row.get("users") or ()
        )

    def _ssd(self) -> float:
        rows = self._project.everywhere("compute.disks.aggregatedList", "disks")
        return float(
            sum(
                int(row.get("sizeGb", 0))
                for place, row in rows
                if self._here(place)
                and last(row.get("type")) in _SSD
                and not self._project.shares(row.get("labels"))
            )
        )

    def _filestore(self) -> float:
        found = 0
        parent = f"{self._project.path}/locations/-"
        for row in self._project.items("file.projects.locations.instances.list", "instances", parent=parent):
            place = str(row["name"]).split("/")[3]
            if (
                row.get("tier") in _ENTERPRISE
                and self._here(place)
                and not self._project.shares(row.get("labels"))
            ):
                found += sum(int(share.get("capacityGb", 0)) for share in row.get("fileShares") or ())
        return float(found)

    @cached_property
    def _instances(self) -> list[tuple[str, Row]]:
        rows = self._project.everywhere("compute.instances.aggregatedList", "instances")
        return [(zone, row) for zone, row in rows if row.get("status") not in _STOPPED]

    @cached_property
    def _machines(self) -> Mapping[str, float]:
        """Use by quota of running machines and of reservations, which count whether used or not."""
        found: dict[str, float] = defaultdict(float)
        for machine in (*self._running(), *self._reserved()):
            for key, amount in machine.takes(self._here(machine.zone)):
                found[key] += amount
        return found

    def _running(self) -> Iterator[_Machines]:
        for zone, row in self._instances:
            if not self._project.shares(row.get("labels")) and not _on_reservation(row):
                model = (row.get("scheduling") or {}).get("provisioningModel", "STANDARD")
                yield _Machines(zone, last(row.get("machineType")), row, model in _PREEMPTIBLE)

    def _reserved(self) -> Iterator[_Machines]:
        for zone, row in self._project.everywhere("compute.reservations.aggregatedList", "reservations"):
            specific = row.get("specificReservation") or {}
            what = specific.get("instanceProperties") or {}
            number = int(specific.get("count", 0))
            if not row.get("specificReservationRequired"):  # machines on it were counted above
                number -= int(specific.get("inUseCount", 0))
            yield _Machines(zone, str(what.get("machineType", "")), what, False, number)

    def _here(self, place: str) -> bool:
        """Return whether a zone or region is (in) the region of the stack."""
        region = self._project.spec.region
        return place == region or place.startswith(f"{region}-")


def _on_reservation(row: Row) -> bool:
    """Return whether a machine consumes a reservation by name, which counts for it."""
    return (row.get("reservationAffinity") or {}).get("consumeReservationType") == "SPECIFIC_RESERVATION"
