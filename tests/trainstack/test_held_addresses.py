"""Announcement of subnetworks that Cloud Run does not release at once."""

import datetime
from typing import Any

import pytest

from trainstack.held_addresses import announced, explained

HELD = (
    "The subnetwork resource 'projects/p/regions/r/subnetworks/a' is already being used by "
    "'projects/p/regions/r/addresses/serverless-ipv4-1755'"
)


NOW = datetime.datetime(2026, 11, 28, 12, tzinfo=datetime.UTC)
OWN, NODES = "x-cloud-run-network-1-cloud-run-1", "x-cloud-run-network-nodes-1"


def ago(hours: float) -> str:
    return (NOW - datetime.timedelta(hours=hours)).isoformat()


def service(*names: str, created: float = 9, modified: float = 9) -> dict[str, Any]:
    place = "projects/p/regions/r/subnetworks/"
    interfaces = [{"subnetwork": f"{place}{name}"} for name in names]
    template = {"vpcAccess": {"networkInterfaces": interfaces}} if names else {}
    times = {"created": ago(created), "modified": ago(modified)}
    return {"type": "gcp:cloudrunv2/service:Service", "outputs": {"template": template}, **times}


def network(own: float) -> list[dict[str, Any]]:
    """The subnetwork of nodes, ten hours old, and that of Cloud Run."""
    kind, pods = "gcp:compute/subnetwork:Subnetwork", [{"rangeName": "pods"}]
    return [
        {"type": kind, "created": ago(10), "outputs": {"name": NODES, "secondaryIpRanges": pods}},
        {"type": kind, "created": ago(own), "outputs": {"name": OWN, "secondaryIpRanges": []}},
    ]


def named(*resources: dict[str, Any]) -> list[tuple[str, bool]]:
    """The subnetworks, and if an `up` is needed before."""
    return [
        (name, "`trainstack up`" in line)
        for line in announced(resources, NOW)
        for name in (OWN, NODES)
        if f" {name} " in line
    ]


def test_a_subnetwork_of_services_is_named_once() -> None:
    other = {"type": "gcp:storage/bucket:Bucket", "outputs": {}}
    assert named(service(OWN), other, service(OWN), *network(10)) == [(OWN, False)]


def test_before_the_service_has_a_subnetwork_of_its_own_what_bills_may_be_left() -> None:
    assert named(service(NODES), *network(10)[:1]) == [(NODES, True)]


@pytest.mark.parametrize(
    ("modified", "found"), [(1.9, [(OWN, False), (NODES, False)]), (2.1, [(OWN, False)])]
)
def test_a_service_that_moved_holds_addresses_in_both_subnetworks_for_two_hours(
    modified: float, found: list[tuple[str, bool]]
) -> None:
    assert named(service(OWN, modified=modified), *network(modified + 0.1)) == found


def test_a_new_service_is_in_no_other_subnetwork() -> None:
    assert named(service(OWN, created=1, modified=1), *network(1.1)) == [(OWN, False)]


def test_services_without_a_subnetwork_hold_none() -> None:
    assert named(service(), {"type": "gcp:cloudrunv2/service:Service"}, *network(10)) == []


def test_an_error_of_a_held_address_alone_has_a_fix() -> None:
    assert len(list(explained(["", HELD, HELD]))) == 1
    assert list(explained(["The subnetwork resource is already being used by 'instances/a'"])) == []
