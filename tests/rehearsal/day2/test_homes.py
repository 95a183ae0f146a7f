"""The size of homes on Filestore, when the default is not the size that was deployed."""

import json
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest
from pulumi import automation

from components.gcp.propagation import settled
from components.gcp.storage.homes import GcpHomes
from rehearsal.client import Rehearsal
from tests.rehearsal.runs.updates import changes, refused

INSTANCE = "gcp:filestore/instance:Instance"
Select = Callable[[Callable[[], None]], automation.Stack]


def program(
    gib: int, *, at_first: bool, protect: bool = False, clients: str = "10.0.0.0/16"
) -> Callable[[], None]:
    def run() -> None:
        network = gcp.compute.Network("net", auto_create_subnetworks=False)
        address = gcp.compute.GlobalAddress(
            "peer", purpose="VPC_PEERING", address_type="INTERNAL", prefix_length=20, network=network.id
        )
        peering = gcp.servicenetworking.Connection(
            "psa",
            network=network.id,
            service="servicenetworking.googleapis.com",
            reserved_peering_ranges=[address.name],
        )
        ring = gcp.kms.KeyRing("ring", location="us-central1")
        key = gcp.kms.CryptoKey("key", key_ring=ring.id)
        made = gcp.projects.ServiceIdentity("agent", service="file.googleapis.com")
        agent = f"service-{gcp.organizations.get_project().number}@cloud-filer.iam.gserviceaccount.com"
        granted = gcp.kms.CryptoKeyIAMMember(
            "use",
            crypto_key_id=key.id,
            role="roles/cloudkms.cryptoKeyEncrypterDecrypter",
            member=f"serviceAccount:{agent}",
            opts=settled(pulumi.ResourceOptions(depends_on=[made]), made.urn),
        )
        args: Any = {
            "region": "us-central1",
            "capacity_gib": gib,
            "at_first": at_first,
            "network_name": peering.network.apply(lambda path: path.rpartition("/")[2]),
            "client_cidrs": [clients],
            "key_id": granted.crypto_key_id,
            "backups": False,
            "protect": protect,
        }
        GcpHomes("homes", args)

    return run


def size(stack: automation.Stack) -> int:
    found = json.loads(json.dumps(stack.export_stack().deployment))["resources"]
    (homes,) = (one for one in found if one["type"] == INSTANCE)
    return int(homes["outputs"]["fileShares"]["capacityGb"])


@pytest.fixture
def deployed(stack: Select) -> automation.Stack:
    found = stack(program(1024, at_first=False))
    found.set_config("gcp:project", automation.ConfigValue("research"))
    found.up()
    return found


def test_a_default_is_for_new_homes_alone(deployed: automation.Stack, stack: Select) -> None:
    """Also where another property changes."""
    assert changes(stack(program(100, at_first=True, protect=True)).up())["update"] == 1
    assert size(deployed) == 1024


def test_a_size_that_is_written_is_applied(deployed: automation.Stack, stack: Select) -> None:
    stack(program(2048, at_first=False)).up()
    assert size(deployed) == 2048
    stack(program(100, at_first=False)).up()
    assert size(deployed) == 100


def test_a_share_that_grew_outside_of_the_stack_is_not_shrunk_by_another_change(
    deployed: automation.Stack, stack: Select, rehearsal: Rehearsal
) -> None:
    """An update of clients sends the size of the state with them."""
    (urn,) = (
        one["urn"]
        for one in json.loads(json.dumps(deployed.export_stack().deployment))["resources"]
        if one["type"] == INSTANCE
    )
    rehearsal.drift(urn, {"fileShares.capacityGb": 2048})
    changed = stack(program(100, at_first=True, clients="10.0.0.0/15"))
    with pytest.raises(automation.CommandError, match="homes-resized-outside"):
        changed.preview()
    assert "homes-resized-outside" in refused(changed)
    changed.refresh()
    assert changes(changed.up())["update"] == 1
    assert size(deployed) == 2048
