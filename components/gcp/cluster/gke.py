"""The Kubernetes control plane of a stack, its identities, and the nodes its own services run on."""

import hashlib

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp import iam
from components.gcp.agents import COMPUTE, GKE, agent
from components.gcp.cluster import settings
from components.gcp.cluster.cluster_args import GcpClusterArgs, cluster_problems
from components.gcp.cluster.logs import keep_control_plane_logs
from components.gcp.cluster.node_account import node_account
from components.gcp.cluster.system_pool import system_pool
from components.gcp.encryption import encryption_key
from components.ordering import after
from infra.errors import UserError
from infra.naming import sanitize

_ADMIN = "roles/container.admin"
# Settings of the first pool have no meaning once it is deleted, as every pool has its own, and a change does
# harm. The provider then shows another pool's `nodeConfig`; a different one replaces the cluster, as do
# other pods per node. Other zones of a cluster become those of all its pools (GKE API v1, ClusterUpdate,
# desiredLocations).
_OF_FIRST_POOL = ["nodeConfig", "defaultMaxPodsPerNode", "nodeLocations"]


class GcpCluster(Component):
    """A regional GKE Standard cluster with private nodes, encrypted secrets, drivers, and a system pool.

    Outputs carry the order of creation and deletion. `endpoint` and `certificate_authority` depend on the
    admins' access and the system nodes: what is deployed through a provider made from them can run at once,
    and is destroyed while access and nodes still work. `node_service_account` depends on its roles, `key_id`
    on the permission of Google's services to use it, `workload_pool` on the cluster that creates it.

    Admins have `roles/container.admin` in the project: GKE's own roles are granted on projects only, so they
    reach every cluster there; a project should hold one stack. The autoscaler removes idle nodes early
    (profile `OPTIMIZE_UTILIZATION`), or after the time of a ComputeClass (`GcpIdleNodes`). *Untested in a
    real project.*
    """

    cluster_name: pulumi.Output[str]
    """Name of the cluster."""
    location: pulumi.Output[str]
    """The cluster's region."""
    cluster_id: pulumi.Output[str]
    """`projects/<project>/locations/<region>/clusters/<name>`."""
    endpoint: pulumi.Output[str]
    """URL of the Kubernetes API: the DNS endpoint's name, or the public address."""
    certificate_authority: pulumi.Output[str]
    """The API's certificate authority, base64; empty at the DNS endpoint, which has a public one."""
    workload_pool: pulumi.Output[str]
    """`<project>.svc.id.goog`: the workload identity pool of pods."""
    node_service_account: pulumi.Output[str]
    """E-mail address of the service account of nodes."""
    key_id: pulumi.Output[str]
    """The key of Kubernetes secrets and of boot disks."""

    def __init__(self, name: str, args: GcpClusterArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        if problems := cluster_problems(args):
            raise UserError(problems)
        self._prefix = name
        number = args["project_number"]
        self.key_id = encryption_key(
            self,
            f"{name}-key",
            location=args["region"],
            purpose="Kubernetes secrets and boot disks",
            users={
                what: agent(self, f"{name}-{what}-agent", service, project=args["project"], number=number)
                for what, service in (("gke", GKE), ("compute", COMPUTE))
            },
        ).id
        self.node_service_account = node_account(self, name, project=args["project"])
        # Before the cluster: logs of its creation are kept, too.
        self._logs = keep_control_plane_logs(self, name, args)
        cluster = self._control_plane(args)
        own = args.get("own_bindings")
        access = [self._admin(args["project"], member, own) for member in args["admins"]]
        system = system_pool(
            self, name, args, cluster=cluster, account=self.node_service_account, key=self.key_id
        )

        usable = [*access, system]
        by_name = args["endpoint"] == "dns"
        dns_name = cluster.control_plane_endpoints_config.dns_endpoint_config.endpoint
        name_or_address = dns_name if by_name else cluster.endpoint
        authority = pulumi.Output.from_input("") if by_name else cluster.master_auth.cluster_ca_certificate
        self.cluster_name = cluster.name
        self.location = cluster.location
        self.cluster_id = cluster.id
        self.endpoint = after(pulumi.Output.concat("https://", name_or_address), usable)
        self.certificate_authority = after(authority, usable)
        self.workload_pool = after(pulumi.Output.from_input(settings.workload_pool(args)), [cluster])
        # Plain attributes: handles inside one program, not part of the schema.
        self.system_node_pool = system
        # No other cluster has it, and unlike address and authority it stays when credentials are rotated.
        self.dns_name = dns_name.apply(str)
        self.register_declared()

    def _control_plane(self, args: GcpClusterArgs) -> gcp.container.Cluster:
        wanted = gcp.container.ClusterArgs(
            name=args["name"],
            description="A training stack",
            location=args["region"],
            node_locations=list(args["zones"]),
            deletion_protection=args.get("deletion_protection", False),
            # Nodes are in pools of their own. GKE needs a first pool, which is deleted at once.
            initial_node_count=1,
            remove_default_node_pool=True,
            node_config=settings.first_pool(self.node_service_account, self.key_id),
            skip_node_pool_refresh=True,
            # Versions and upgrades.
            release_channel=gcp.container.ClusterReleaseChannelArgs(channel=args["channel"].upper()),
            min_master_version=args["kubernetes_version"],
            maintenance_policy=settings.maintenance(args["maintenance"]),
            notification_config=settings.notifications(args.get("notifications")),
            # Data.
            database_encryption=gcp.container.ClusterDatabaseEncryptionArgs(
                state="ENCRYPTED", key_name=self.key_id
            ),
            # Pools are the stack's, never GKE's. A node is removed soon after its last pod, and pods are
            # packed onto few nodes: GPUs are the main cost.
            cluster_autoscaling=gcp.container.ClusterClusterAutoscalingArgs(
                enabled=False,
                autoscaling_profile="OPTIMIZE_UTILIZATION",
                default_compute_class_enabled=True if args.get("default_class") else None,
            ),
            # Monitoring.
            logging_config=gcp.container.ClusterLoggingConfigArgs(enable_components=list(settings.LOGS)),
            monitoring_config=settings.monitoring(),
            cost_management_config=gcp.container.ClusterCostManagementConfigArgs(enabled=True),
            addons_config=settings.addons(args),
        )
        settings.reach(wanted, args)
        settings.guard(wanted, args)
        return gcp.container.Cluster(
            f"{self._prefix}-cluster",
            wanted,
            self.child(pulumi.ResourceOptions(ignore_changes=_OF_FIRST_POOL, depends_on=[self._logs])),
        )

    def _admin(self, project: str, member: str, own: str | None) -> gcp.projects.IAMMember:
        # Independent of its place in the list: reordering must not remove access.
        digest = hashlib.sha256(member.encode()).hexdigest()[:6]
        name = f"{self._prefix}-admin-{sanitize(member.partition(':')[2], max_length=30)}-{digest}"
        return iam.on_project(self, name, project, _ADMIN, member, own)
