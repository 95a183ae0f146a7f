"""Reservations of Compute Engine, read with read-only requests.

Untested in a real project: responses are checked against the discovery document.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import requests

from infra.catalog.gcp.jobs import job_reservation
from infra.catalog.gcp.pools import reservation
from infra.clouds.gcp import api
from infra.clouds.gcp.api import ApiRequestError
from infra.clouds.gcp.login import logged_in
from infra.errors import Problem
from trainstack.capacity.classes import PoolCapacity
from trainstack.capacity.reserved import CapacitySegment, ReservedCapacity
from trainstack.ledger.periods import TimeSpan
from trainstack.preflight.gcp.methods import METHODS

_LIST = "compute.reservations.aggregatedList"
# Without capacity (discovery document compute v1, Reservation.status).
_NEVER = ("CREATING", "DELETING", "INVALID")


def described(
    pools: Iterable[PoolCapacity], session: requests.Session
) -> Iterator[ReservedCapacity | Problem]:
    """Each reservation of the pools, or the reason why it could not be read. Raises LoggedOutError."""
    for pool in pools:
        if pool.reservation is None:
            continue
        at = f"{pool.path}.purchase"
        try:
            with logged_in():
                found = _found(pool, session)
        except ApiRequestError as error:
            fix = "Allow compute.reservations.list; docs/reference/preflight.md has a role with it."
            rule = f"{error.code}: {error.message}"
            yield Problem(at, pool.reservation, rule, fix, code="reservation-not-readable")
            continue
        except requests.RequestException as error:
            fix = "Check the connection to Google Cloud, and run the command again."
            yield Problem(at, pool.reservation, str(error), fix, code="reservation-not-readable")
            continue
        if found is None:
            rule = "does not exist: it was deleted, or a future reservation has not begun"
            fix = "`trainstack preflight` checks it."
            yield Problem(at, pool.reservation, rule, fix, code="reservation-not-found")
        else:
            yield _described(str(pool.reservation), found)


def _found(pool: PoolCapacity, session: requests.Session) -> Mapping[str, Any] | None:
    """The reservation in a zone of the pool's region; None without one."""
    named = reservation(str(pool.reservation)) or job_reservation(str(pool.reservation))
    if named is None:
        return None
    zone = getattr(named, "zone", f"{pool.region}-")
    asked = {"project": named.project, "filter": f'name = "{named.name}"'}
    for page in api.pages(session, METHODS[_LIST], asked):
        for scope, rows in (page.get("items") or {}).items():
            for row in rows.get("reservations") or ():
                if row.get("name") == named.name and scope.rpartition("/")[2].startswith(zone):
                    return row  # type: ignore[no-any-return]
    return None


def _described(id: str, found: Mapping[str, Any]) -> ReservedCapacity:
    specific = found.get("specificReservation") or {}
    count = int(specific.get("count", 0))
    # A reservation is billed while it exists, and one in calendar mode exists for its period.
    span = TimeSpan(_time(found.get("creationTimestamp")), _time(found.get("deleteAtTime")))
    never = found.get("status") in _NEVER
    return ReservedCapacity(
        id=id,
        status=str(found.get("status", "unknown")),
        machine=str((specific.get("instanceProperties") or {}).get("machineType", "")),
        segments=() if never else (CapacitySegment(span, count),),
        free=count - int(specific.get("inUseCount", 0)),
    )


def _time(text: str | None) -> datetime.datetime | None:
    return datetime.datetime.fromisoformat(text).astimezone(datetime.UTC) if text else None
