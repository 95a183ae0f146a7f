"""The network of a training stack: private nodes, addresses for pods, private access to Google's services."""

from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp.network.firewall import lustre_servers_in, way_out
from components.gcp.network.logs import keep_logs
from components.gcp.network.nat import nat
from components.gcp.network.ranges import NetworkRanges, plan_ranges
from components.gcp.network.services_access import services_access
from components.gcp.network.subnetwork import custom_network, flow_log, short
from components.ordering import after
from infra.catalog.gcp.fabrics import JUMBO

POD_RANGE, SERVICE_RANGE = "pods", "services"


class GcpNetworkArgs(TypedDict):
    """Arguments of a `GcpNetwork`."""

    project: str
    """The project's id."""
    region: str
    """The region of nodes, such as `us-central1`; must be the provider's."""
    cidr: str
    """The private IPv4 range of everything in the stack, /16 to /20."""
    pods_per_node: int
    """Most pods of a node; determines the number of nodes."""
    flow_log_retention_days: int
    """Days that flow logs are kept, 1 to 3650."""
    nodes: NotRequired[dict[str, int]]
    """The largest number of nodes, by how many pods may run on each, such as `{"32": 100}`. Default: as many
    as fit."""
    mtu: NotRequired[int]
    """Largest packet in bytes, 1300 to 8896; at most 8244 with A3 High or A3 Mega nodes. Default: 8896. A
    change requires a restart of every node."""
    lustre: NotRequired[bool]
    """Let Managed Lustre connect to nodes that mount it. Default: no."""
    cloud_run: NotRequired[bool]
    """Give services of Cloud Run a subnetwork of their own. Default: no."""


class GcpNetwork(Component):
    """VPC, subnetwork, NAT, firewall, flow logs and private service access.

    The subnetwork's names depend on its NAT, and the network's for managed services on the peering: resources
    there are created after these and destroyed before them. Google's APIs need no DNS zone of ours: nodes
    reach their usual addresses by Private Google Access.

    Cloud Run holds the addresses of a service for one to two hours after its deletion (Cloud Run
    documentation, "Direct VPC with a VPC network"; DefangLabs/pulumi-defang issue 476). Meanwhile their
    subnetwork cannot be deleted, and a deletion ends there. So it is created first, and everything else
    depends on it. What bills depends on the nodes' as well: a service that moved has left addresses there.
    *Untested in a real project.*
    """

    network_id: pulumi.Output[str]
    """`projects/<project>/global/networks/<name>`."""
    network_name: pulumi.Output[str]
    """Name of the VPC network."""
    network_self_link: pulumi.Output[str]
    """URL of the VPC network."""
    subnetwork_id: pulumi.Output[str]
    """`projects/<project>/regions/<region>/subnetworks/<name>`, for nodes."""
    subnetwork_self_link: pulumi.Output[str]
    """URL of the subnetwork."""
    pod_range_name: pulumi.Output[str]
    """The subnetwork's secondary range for pods."""
    service_range_name: pulumi.Output[str]
    """The subnetwork's secondary range for services."""
    services_network: pulumi.Output[str]
    """The network's id for Cloud SQL, Managed Lustre and Filestore; usable once the peering exists."""
    cloud_run_subnetwork_id: pulumi.Output[str] | None
    """The subnetwork of services of Cloud Run; none without `cloud_run`."""

    def __init__(self, name: str, args: GcpNetworkArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        nodes = {int(pods): count for pods, count in args.get("nodes", {}).items()}
        # A plain attribute: a handle inside one program, not part of the schema.
        self.ranges = plan_ranges(args["cidr"], pods_per_node=args["pods_per_node"], nodes=nodes)
        network = custom_network(
            self,
            f"{name}-vpc",
            description="Nodes, pods and managed services of a training stack",
            mtu=args.get("mtu", JUMBO),
        )
        of_cloud_run = self._of_cloud_run(name, args, network)
        network_id = after(network.id, of_cloud_run)
        subnetwork = self._subnetwork(name, args["region"], network_id, self.ranges)
        # A plain attribute, as above: everything else of the stack that bills depends on them.
        self.deleted_last = [*of_cloud_run, subnetwork]
        rules = way_out(self, name, network=network_id, cidr=args["cidr"])
        gateway = nat(self, name, network=network_id, subnetwork=subnetwork, pod_range=POD_RANGE)
        peering = services_access(self, name, network=network_id, cidr=self.ranges.services_access)
        keep_logs(
            self,
            name,
            project=args["project"],
            region=args["region"],
            network_name=after(network.name, self.deleted_last),
            subnetwork_names=[one.name for one in (subnetwork, *of_cloud_run)],
            gateway_name=gateway.name,
            retention_days=args["flow_log_retention_days"],
        )

        servers = self.ranges.services_access
        lustre = (
            [lustre_servers_in(self, name, network=network_id, servers=servers)] if args.get("lustre") else []
        )
        ready = [gateway, *rules]
        self.network_id = network_id
        self.network_name = network.name
        self.network_self_link = network.self_link
        self.subnetwork_id = after(subnetwork.id, ready)
        self.subnetwork_self_link = after(subnetwork.self_link, ready)
        self.pod_range_name = after(pulumi.Output.from_input(POD_RANGE), [subnetwork])
        self.service_range_name = after(pulumi.Output.from_input(SERVICE_RANGE), [subnetwork])
        self.services_network = after(network_id, [peering, *lustre])
        self.cloud_run_subnetwork_id = next((one.id for one in of_cloud_run), None)
        self.register_declared()

    def _subnetwork(
        self, name: str, region: str, network: pulumi.Output[str], ranges: NetworkRanges
    ) -> gcp.compute.Subnetwork:
        return gcp.compute.Subnetwork(
            short(f"{name}-nodes"),
            network=network,
            region=region,
            description="Nodes, with ranges for pods and services",
            ip_cidr_range=ranges.nodes,
            secondary_ip_ranges=[
                gcp.compute.SubnetworkSecondaryIpRangeArgs(range_name=POD_RANGE, ip_cidr_range=ranges.pods),
                gcp.compute.SubnetworkSecondaryIpRangeArgs(
                    range_name=SERVICE_RANGE, ip_cidr_range=ranges.services
                ),
            ],
            private_ip_google_access=True,
            stack_type="IPV4_ONLY",
            log_config=flow_log(),
            opts=self.child(),
        )

    def _of_cloud_run(
        self, name: str, args: GcpNetworkArgs, network: gcp.compute.Network
    ) -> list[gcp.compute.Subnetwork]:
        """The subnetwork of services of Cloud Run, if wanted."""
        if not args.get("cloud_run"):
            return []
        return [
            gcp.compute.Subnetwork(
                short(f"{name}-cloud-run"),
                network=network.id,
                region=args["region"],
                description="Services of Cloud Run",
                ip_cidr_range=self.ranges.cloud_run,
                private_ip_google_access=True,
                stack_type="IPV4_ONLY",
                log_config=flow_log(),
                opts=self.child(),
            )
        ]
