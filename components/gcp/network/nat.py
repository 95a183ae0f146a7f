"""Internet access of nodes without public addresses: Cloud Router with Cloud NAT."""

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.network.subnetwork import short

# Ports are connections to one address at a time. A machine begins with the first number and doubles it
# again and again up to the second, as when images and packages come from one registry; a public address
# has 64,512 (Cloud NAT documentation, "Ports").
LEAST_PORTS, MOST_PORTS = 64, 4096


def nat(
    component: Component,
    name: str,
    *,
    network: pulumi.Input[str],
    subnetwork: gcp.compute.Subnetwork,
    pod_range: str,
) -> gcp.compute.RouterNat:
    """NAT for nodes and pods of one subnetwork, for outgoing connections only.

    Google allocates and releases addresses as needed: nothing outside depends on them, since the
    stack's own services are reached privately. Google's APIs are not reached this way (Private Google
    Access). Connections without a free port are logged.
    """
    router = gcp.compute.Router(
        short(f"{name}-router"), network=network, description="For Cloud NAT", opts=component.child()
    )
    return gcp.compute.RouterNat(
        short(f"{name}-nat"),
        router=router.name,
        region=router.region,
        nat_ip_allocate_option="AUTO_ONLY",
        source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
        subnetworks=[
            gcp.compute.RouterNatSubnetworkArgs(
                name=subnetwork.id,
                source_ip_ranges_to_nats=["PRIMARY_IP_RANGE", "LIST_OF_SECONDARY_IP_RANGES"],
                secondary_ip_range_names=[pod_range],
            )
        ],
        # A fixed number of ports would be too few for a node that installs, and idle on all others. It
        # excludes endpoint-independent mapping, which only peer-to-peer protocols need.
        enable_dynamic_port_allocation=True,
        enable_endpoint_independent_mapping=False,
        min_ports_per_vm=LEAST_PORTS,
        max_ports_per_vm=MOST_PORTS,
        log_config=gcp.compute.RouterNatLogConfigArgs(enable=True, filter="ERRORS_ONLY"),
        opts=component.child(),
    )
