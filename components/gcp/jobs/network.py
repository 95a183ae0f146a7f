"""The network of a stack without a cluster: notebooks, the tracking server, and the way to its database."""

from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.network.firewall import way_out
from components.gcp.network.logs import keep_logs
from components.gcp.network.nat import nat
from components.gcp.network.ranges import plan_ranges
from components.gcp.network.services_access import services_access
from components.gcp.network.subnetwork import custom_network, flow_log, short
from components.ordering import after
from infra.catalog.gcp.fabrics import JUMBO

# Any number does, for there are no pods. The ranges are those that a cluster would have, so that a stack that
# grows keeps subnetwork and peering where they are.
_PODS_PER_NODE = 32


class GcpJobNetworkArgs(TypedDict):
    """What a `GcpJobNetwork` is made of."""

    project: str
    """The project's id."""
    region: str
    """The region, such as `us-central1`; must be the provider's."""
    cidr: str
    """The private IPv4 range of everything in the stack, /16 to /20."""
    flow_log_retention_days: int
    """Days that flow logs are kept, 1 to 3650."""


class GcpJobNetwork(Component):
    """VPC, subnetwork, NAT, firewall, flow logs and private service access, without ranges for pods.

    Jobs do not run in it: Vertex AI runs them in a network of Google's, from where they reach APIs of Google
    and the tracking server at their usual addresses. So a job needs no peering, and no addresses here.
    Nothing may connect to what is inside. *Untested in a real project.*
    """

    network_id: pulumi.Output[str]
    """`projects/<project>/global/networks/<name>`."""
    network_name: pulumi.Output[str]
    """Name of the VPC network."""
    subnetwork_id: pulumi.Output[str]
    """`projects/<project>/regions/<region>/subnetworks/<name>`; comes with its way out."""
    services_network: pulumi.Output[str]
    """The network's id for Cloud SQL; usable once the peering stands."""

    def __init__(
        self, name: str, args: GcpJobNetworkArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, opts)
        ranges = plan_ranges(args["cidr"], pods_per_node=_PODS_PER_NODE)
        network = custom_network(
            self, f"{name}-vpc", description="Notebooks and tracking of a training stack", mtu=JUMBO
        )
        subnetwork = gcp.compute.Subnetwork(
            short(f"{name}-machines"),
            network=network.id,
            region=args["region"],
            description="Notebooks, and the tracking server's way to its database",
            ip_cidr_range=ranges.nodes,
            private_ip_google_access=True,
            stack_type="IPV4_ONLY",
            log_config=flow_log(),
            opts=self.child(),
        )
        rules = way_out(self, name, network=network.id, cidr=args["cidr"])
        gateway = nat(self, name, network=network.id, subnetwork=subnetwork)
        peering = services_access(self, name, network=network.id, cidr=ranges.services_access)
        keep_logs(
            self,
            name,
            project=args["project"],
            region=args["region"],
            network_name=network.name,
            subnetwork_name=subnetwork.name,
            gateway_name=gateway.name,
            retention_days=args["flow_log_retention_days"],
        )
        self.network_id, self.network_name = network.id, network.name
        self.subnetwork_id = after(subnetwork.id, [gateway, *rules])
        self.services_network = after(network.id, [peering])
        self.register_outputs(
            {
                "network_id": self.network_id,
                "network_name": self.network_name,
                "subnetwork_id": self.subnetwork_id,
                "services_network": self.services_network,
            }
        )
