"""Addresses that Cloud Run holds in a subnetwork after its services are deleted or have left it.

Source: Cloud Run documentation, "Direct VPC with a VPC network" (one to two hours).
"""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_SERVICE, _SUBNETWORK = "gcp:cloudrunv2/service:Service", "gcp:compute/subnetwork:Subnetwork"
_SIGN = "/addresses/serverless-ipv4-"
_HELD = datetime.timedelta(hours=2)
State = Mapping[str, Any]


def announced(resources: Sequence[State], now: datetime.datetime) -> Iterator[str]:
    """One line for each subnetwork of a state that cannot be deleted together with its services."""
    found = [one for one in resources if one["type"] == _SUBNETWORK and one.get("outputs")]
    subnetworks = {one["outputs"]["name"]: one for one in found}
    # That of nodes has ranges for pods.
    own = {name for name, one in subnetworks.items() if not one["outputs"].get("secondaryIpRanges")}
    held = [
        (name, service) for service in resources if service["type"] == _SERVICE for name in _used(service)
    ]
    # It was in the subnetwork of nodes, as in a stack of an earlier version, until an update.
    moved = any(
        _time(service, "created") < _time(subnetworks[name], "created")
        and now - _time(service, "modified") < _HELD
        for name, service in held
        if name in own
    )
    left = [name for name in subnetworks if name not in own] if moved else []
    for name in dict.fromkeys([*(name for name, _ in held), *left]):
        rest = "Only parts of the network, which cost nothing, are left then: destroy again after two hours."
        if name not in own and name not in left:
            rest = (
                "Others may be left with it and bill: run `trainstack up` before, then nothing that bills is."
            )
        yield f"Cloud Run holds addresses in {name} for up to two hours, and this destroy ends there. {rest}"


def explained(errors: Sequence[str]) -> Iterator[str]:
    """The fix for a subnetwork that was not deleted."""
    if any(_SIGN in error for error in errors):
        yield "Cloud Run releases these addresses within two hours: run the same command again after them."


def _used(service: State) -> Iterator[str]:
    access = ((service.get("outputs") or {}).get("template") or {}).get("vpcAccess") or {}
    for one in access.get("networkInterfaces") or ():
        yield str(one["subnetwork"]).rpartition("/")[2]


def _time(resource: State, what: str) -> datetime.datetime:
    """A time of a resource's record; records of early engines have none, and are old."""
    return datetime.datetime.fromisoformat(resource.get(what) or "2000-01-01T00:00:00+00:00")
