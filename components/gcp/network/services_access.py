"""Private service access: the peering with the network of Cloud SQL, Lustre and Filestore."""

import ipaddress

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.network.subnetwork import short


def services_access(
    component: Component, name: str, *, network: pulumi.Input[str], cidr: str
) -> gcp.servicenetworking.Connection:
    """Give managed services private addresses in `cidr`.

    Cloud SQL holds the connection for days after its last instance is deleted, and its deletion then fails
    with "Producer services are still using this connection" (terraform-provider-google issue 16275). The
    peering is removed all the same, or the network could not be deleted. *Untested in a real project.*
    """
    block = ipaddress.IPv4Network(cidr)
    reserved = gcp.compute.GlobalAddress(
        short(f"{name}-services"),
        network=network,
        description="Cloud SQL, Managed Lustre and Filestore",
        address_type="INTERNAL",
        purpose="VPC_PEERING",
        address=str(block.network_address),
        prefix_length=block.prefixlen,
        opts=component.child(),
    )
    return gcp.servicenetworking.Connection(
        short(f"{name}-services"),
        network=network,
        service="servicenetworking.googleapis.com",
        reserved_peering_ranges=[reserved.name],
        deletion_policy="REMOVE_PEERING",
        # Reuses what a killed deployment left behind.
        update_on_creation_fail=True,
        opts=component.child(),
    )
