"""Private service access and the services that use it.

Source: hashicorp/terraform-provider-google, services/servicenetworking (id, `deletion_policy`), issue 16275
(error text; a deleted Cloud SQL instance holds the connection for about four days).
"""

import time
from collections.abc import Mapping
from urllib.parse import quote

from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Properties, Record, RefusalError
from rehearsal.gcp.rules.book import block
from rehearsal.gcp.site import Site

CONNECTION, INSTANCE = "servicenetworking/connection:Connection", "sql/databaseInstance:DatabaseInstance"
# Documents: network -> time until which a deleted instance still holds its connection.
_HELD = "peering-held"
_HELD_S = 4 * 86_400
_PRODUCERS = (INSTANCE, "lustre/instance:Instance", "filestore/instance:Instance")
_FREE = ("REMOVE_PEERING", "ABANDON")


def _outputs(site: Site, seed: str, inputs: Properties, outputs: Properties) -> Properties:
    """The id contains the network in escaped form."""
    network, service = str(inputs.get("network")), str(inputs.get("service"))
    return {
        "id": f"{quote(network, safe='')}:{quote(service, safe='')}",
        "peering": service.replace(".", "-"),
    }


def _deleting(site: Site, connection: Record) -> None:
    """Services that use the connection keep it, Cloud SQL for days after its last instance is gone."""
    network = site.find(connection.inputs.get("network"), "compute/network:Network")
    if network is None or connection.inputs.get("deletionPolicy") in _FREE:
        return
    until = site.state.document(_HELD, network.id)
    users = [one for token in _PRODUCERS for one in site.users(network, token)]
    if not users and (until is None or until < time.time()):
        return
    raise RefusalError(
        "failedPrecondition",
        "Unable to remove Service Networking Connection, err: Error waiting for Delete Service Networking "
        "Connection: Error code 9, message: Failed to delete connection; Producer services (e.g. CloudSQL, "
        "Cloud Memstore, etc.) are still using this connection.",
        f"Used by {users[0].id}."
        if users
        else "A deleted Cloud SQL instance holds it for about four days: set deletionPolicy REMOVE_PEERING "
        "and run up before destroy.",
    )


def _deleted(site: Site, connection: Record) -> None:
    network = site.find(connection.inputs.get("network"), "compute/network:Network")
    if network is not None:
        site.state.drop_document(_HELD, network.id)


def hold(site: Site, instance: Record) -> None:
    """Record the deletion of a Cloud SQL instance with a private address."""
    value = block(instance.inputs.get("settings"), "ipConfiguration").get("privateNetwork")
    network = site.find(value, "compute/network:Network")
    begun = site.state.unconfirmed(instance.urn)
    if network is not None and (begun is None or begun[0].key != instance.key):
        site.state.put_document(_HELD, network.id, time.time() + _HELD_S)


HOOKS: Mapping[str, Hooks[Site]] = {CONNECTION: Hooks(outputs=_outputs, deleting=_deleting, deleted=_deleted)}
