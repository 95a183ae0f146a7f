"""Addresses of Cloud Run in a subnetwork (Direct VPC egress), which outlive the service.

Source: Cloud Run documentation, "Direct VPC with a VPC network" ("Delete subnet": wait one to two hours);
DefangLabs/pulumi-defang issues 462 and 476 (error text, 77 to 110 minutes). Here, an address is held until
the first deletion of its subnetwork: a rehearsal does not take hours.
"""

from collections.abc import Mapping

from rehearsal.core.emulation.site import Hooks
from rehearsal.core.model import Properties, Record, RefusalError
from rehearsal.core.properties import at
from rehearsal.gcp.site import Site

SERVICE, SUBNETWORK = "cloudrunv2/service:Service", "compute/subnetwork:Subnetwork"
# Documents: subnetwork -> name of an address that Cloud Run holds there.
_HELD = "serverless-addresses"


def _hold(site: Site, service: Record) -> None:
    """Take an address in each subnetwork of a service; a new revision takes one elsewhere and keeps both."""
    for used in at(service.inputs, "template.vpcAccess.networkInterfaces") or ():
        subnetwork = site.find(used.get("subnetwork"), SUBNETWORK)
        if subnetwork is not None:
            site.state.put_document(_HELD, subnetwork.id, f"serverless-ipv4-{service.key}")


def release(site: Site, action: str, old: Properties | None, new: Properties) -> Properties:
    """Refuse the deletion of a subnetwork with an address that no service uses any more, once."""
    subnetwork = site.current(SUBNETWORK) if action == "delete" else None
    if subnetwork is None or any(site.users(subnetwork, SERVICE)):
        return {}
    address = site.state.document(_HELD, subnetwork.id)
    if address is None:
        return {}
    site.state.drop_document(_HELD, subnetwork.id)
    place = subnetwork.id.partition("/subnetworks/")[0]
    raise RefusalError(
        "resourceInUseByAnotherResource",
        f"The subnetwork resource '{subnetwork.id}' is already being used by '{place}/addresses/{address}'",
        "Cloud Run releases its addresses one to two hours after the service is deleted: run it again then.",
    )


HOOKS: Mapping[str, Hooks[Site]] = {SERVICE: Hooks(created=_hold, changed=_hold)}
