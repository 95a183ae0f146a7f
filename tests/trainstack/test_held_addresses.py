"""Announcement of subnetworks that Cloud Run does not release at once."""

from typing import Any

import pytest

from trainstack.held_addresses import announced, explained

HELD = (
    "The subnetwork resource 'projects/p/regions/r/subnetworks/a' is already being used by "
    "'projects/p/regions/r/addresses/serverless-ipv4-1755'"
)


def service(*names: str) -> dict[str, Any]:
    place = "projects/p/regions/r/subnetworks/"
    interfaces = [{"subnetwork": f"{place}{name}"} for name in names]
    template = {"vpcAccess": {"networkInterfaces": interfaces}} if names else {}
    return {"type": "gcp:cloudrunv2/service:Service", "urn": "u", "outputs": {"template": template}}


@pytest.mark.parametrize("name", ["dev-network-cloud-run-1", "dev-network-nodes-1"])
def test_a_subnetwork_of_a_service_is_named_once(name: str) -> None:
    other = {"type": "gcp:storage/bucket:Bucket", "urn": "u", "outputs": {}}
    (line,) = announced([service(name), other, service(name)])
    assert name in line


def test_services_without_a_subnetwork_hold_none() -> None:
    assert list(announced([service(), {"type": "gcp:cloudrunv2/service:Service", "urn": "u"}])) == []


def test_an_error_of_a_held_address_alone_has_a_fix() -> None:
    assert len(list(explained(["", HELD, HELD]))) == 1
    assert list(explained(["The subnetwork resource is already being used by 'instances/a'"])) == []
