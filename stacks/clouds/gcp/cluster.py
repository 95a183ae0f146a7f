"""Google Cloud: one GKE cluster with GPU pools, buckets, file systems, tracking and a budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from components.gcp.apis import GcpApis
from components.gcp.cluster.cluster_args import GcpClusterArgs
from components.gcp.cluster.gke import GcpCluster
from components.gcp.cluster.idle_nodes import GcpIdleNodes, GcpIdleNodesArgs
from components.gcp.cluster.kubeconfig import kubeconfig
from components.gcp.money.budget import GcpBudget, GcpBudgetArgs
from components.gcp.money.idle import GcpIdleAlert
from components.gcp.network.ranges import NetworkRanges, plan_ranges
from components.gcp.network.vpc import GcpNetwork
from components.gcp.pools.cpu_pool import GcpCpuPool
from components.gcp.pools.gpu_pool import GcpGpuPool
from components.gcp.pools.installers import GcpFabricInstallers, InstalledArgs
from components.gcp.pools.order import waits_for
from components.kubernetes.network_policies import PlatformNetwork
from infra.alarms import storage as storage_alarms
from infra.catalog.gcp import fabrics, facts
from infra.catalog.gcp.deploying import apis_of
from infra.catalog.gcp.network import nodes_by_pods
from infra.catalog.gcp.pools import stays_idle
from infra.naming import gcp_labels, large_tags, lasting_tags
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.model import demanded
from infra.stackspec.rules.gcp.gpu_networks import fast_pools
from stacks.clouds.gcp.alerting import alerting_on_gcp
from stacks.clouds.gcp.currency import budget_currency
from stacks.clouds.gcp.gpu_networks import gpu_networks, pod_networks
from stacks.clouds.gcp.pools import cpu_pool_args, gpu_pool_args, is_classic, pool_record
from stacks.clouds.gcp.storage import GcpStore, alerts_on_gcp, store_on_gcp
from stacks.clouds.gcp.teams import teams_on_gcp
from stacks.clouds.gcp.tracking import tracking_on_gcp
from stacks.clouds.gcp.validation import validation_on_gcp
from stacks.clouds.tags import owners_tags
from stacks.parts import Alerting, Cluster, Pools, ServiceAccount, TeamData, Tracking, ValidationAccess
from stacks.providers import gcp_provider, kubernetes_provider


@dataclass(frozen=True)
class GkeCluster(Cluster):
    """A cluster on Google Cloud, with its network."""

    gke: GcpCluster
    network: GcpNetwork
    on_both: pulumi.ResourceOptions
    """Options for resources on Google Cloud and in the cluster: both providers."""


class GcpCloud:
    """`stacks.parts.ClusterCloud` on Google Cloud. Settings of Google Cloud are in the spec's part `on`."""

    def __init__(
        self,
        spec: StackSpec,
        layout: ClusterLayout,
        on: GcpSpec,
        *,
        of: str = "",
        federated: bool = False,
    ) -> None:
        """`of`: the large stack that this one is a part of; `federated`: its manager is on another cloud."""
        self._spec, self._layout, self._on = spec, layout, on
        # Several stacks of one project have the same administrators and members.
        self._own_bindings = spec.name if of else None
        tags = {**owners_tags(spec), **lasting_tags(spec.name), **(large_tags(of) if of else {})}
        # Labels are changed in place, also those of nodes: templates may have all of them.
        self._labels = gcp_labels(tags)
        self._provider = gcp_provider(
            f"{spec.name}-gcp",
            project=on.project,
            region=spec.region,
            labels=self._labels,
            impersonate=on.impersonate,
        )
        provided = pulumi.ResourceOptions(providers=[self._provider])
        shared, kept = spec.data.shared_fs is not None, spec.data.on_destroy == "keep"
        names = apis_of(shared_fs=shared, homes=spec.data.homes, kept=kept, federated=federated)
        switched_on = GcpApis(f"{spec.name}-apis", {"names": names}, provided)
        self._on_gcp = pulumi.ResourceOptions(providers=[self._provider], depends_on=[switched_on])
        self._number = gcp.organizations.get_project_output(
            project_id=on.project, opts=pulumi.InvokeOutputOptions(provider=self._provider)
        ).number
        self._ranges: NetworkRanges = plan_ranges(
            layout.network_cidr, pods_per_node=demanded(on.pods_per_node), nodes=self._most_nodes()
        )

    def _most_nodes(self) -> dict[int, int]:
        jobs, system = sum(pool.max_nodes for pool in self._layout.pools), self._layout.system_pool.max_nodes
        return nodes_by_pods(demanded(self._on.pods_per_node), jobs=jobs, system=system)

    def cluster(self) -> GkeCluster:
        """A VPC and a GKE cluster in it."""
        name = self._spec.name
        network = self._network()
        gke = GcpCluster(f"{name}-cluster", self._cluster_args(network), self._on_gcp)
        login = pulumi.Output.all(gke.cluster_name, gke.endpoint, gke.certificate_authority).apply(
            lambda known: kubeconfig(*known)
        )
        kubernetes = kubernetes_provider(f"{name}-kubernetes", kubeconfig=login, cluster=gke.dns_name)
        return GkeCluster(
            name=gke.cluster_name,
            kubeconfig=login,
            inside=pulumi.ResourceOptions(providers=[kubernetes]),
            # Without the range of pods, which would admit all pods where ranges match them.
            control_plane=PlatformNetwork("gke", [self._ranges.nodes]),
            gke=gke,
            network=network,
            on_both=pulumi.ResourceOptions(
                providers=[self._provider, kubernetes], depends_on=self._on_gcp.depends_on
            ),
        )

    def _network(self) -> GcpNetwork:
        return GcpNetwork(
            f"{self._spec.name}-network",
            {
                "project": self._on.project,
                "region": self._spec.region,
                "cidr": self._layout.network_cidr,
                "pods_per_node": demanded(self._on.pods_per_node),
                "flow_log_retention_days": self._spec.data.log_retention_days,
                "nodes": {str(pods): most for pods, most in self._most_nodes().items()},
                "mtu": fabrics.primary_mtu(),
                "lustre": self._spec.data.shared_fs is not None,
            },
            self._on_gcp,
        )

    def _cluster_args(self, network: GcpNetwork) -> GcpClusterArgs:
        window, pool = demanded(self._on.maintenance), self._layout.system_pool
        args: GcpClusterArgs = {
            "project": self._on.project,
            "project_number": self._number,
            "region": self._spec.region,
            "name": self._spec.name,
            "kubernetes_version": self._layout.kubernetes_version,
            "channel": demanded(self._on.channel),
            "network": network.network_id,
            "subnetwork": network.subnetwork_id,
            "pod_range_name": network.pod_range_name,
            "service_range_name": network.service_range_name,
            "zones": self._layout.zones,
            "pods_per_node": demanded(self._on.pods_per_node),
            "endpoint": demanded(self._on.endpoint),
            "api_access": self._layout.api_access,
            "admins": self._on.admins,
            "maintenance": {
                "days": window.days,
                "start": window.start,
                "hours": window.hours,
                "hold_nodes": window.hold_nodes,
            },
            "log_retention_days": self._spec.data.log_retention_days,
            "system_pool": {
                "machine": pool.machine,
                "min_nodes": pool.min_nodes,
                "max_nodes": pool.max_nodes,
            },
            "multi_networking": any(is_classic(pool, self._on) for pool in self._layout.pools),
            "default_class": self._layout.idle_minutes is not None,
            "checkpoint_addon": self._on.checkpoint_addon,
            "readiness_addon": self._on.readiness_addon,
            "labels": self._labels,
            "deletion_protection": self._spec.data.protect,
        }
        if self._own_bindings is not None:
            args["own_bindings"] = self._own_bindings
        members = [member for team in self._spec.teams for member in team.members]
        domains = {member.rpartition("@")[2] for member in members if member.startswith("group:")}
        if domains:
            # One domain, by the rules of the spec.
            args["groups"] = f"gke-security-groups@{min(domains)}"
        return args

    def pools(self, cluster: GkeCluster) -> Pools:
        """Node pools with their networks; GKE itself scales them and runs the device plugin."""
        made: list[pulumi.Resource] = []
        found = {}
        fast = fast_pools(self._layout, self._on)
        networks = gpu_networks(
            self._spec.name,
            fast,
            first_rdma_zone=self._on.first_rdma_zone,
            project=self._on.project,
            region=self._spec.region,
            ranges=self._ranges,
            opts=self._on_gcp,
        )
        objects = networks.objects(cluster.inside)
        names = pod_networks(fast, self._on.first_rdma_zone)
        for pool in self._layout.pools:
            opts = pulumi.ResourceOptions.merge(
                self._on_gcp, pulumi.ResourceOptions(depends_on=waits_for(made))
            )
            component: GcpGpuPool | GcpCpuPool
            if facts.cpu_type(pool.machine) is not None:
                args = cpu_pool_args(pool, self._on, cluster=cluster.gke, labels=self._labels)
                component = GcpCpuPool(f"{self._spec.name}-{pool.name}", args, opts)
            else:
                with_gpus = gpu_pool_args(
                    pool,
                    self._on,
                    cluster=cluster.gke,
                    attachments=networks.attachments(pool.name),
                    labels=self._labels,
                )
                component = GcpGpuPool(f"{self._spec.name}-{pool.name}", with_gpus, opts)
            made.append(component)
            found[pool.name] = pool_record(
                pool,
                self._on,
                component.labels,
                region=self._spec.region,
                networks=names.get(pool.name),
            )
        if self._layout.idle_minutes is not None:
            idle: GcpIdleNodesArgs = {"minutes": self._layout.idle_minutes}
            GcpIdleNodes(f"{self._spec.name}-idle-nodes", idle, cluster.inside)
        if any(stays_idle(pool.machine, pool.min_nodes) for pool in self._layout.pools):
            GcpIdleAlert(
                f"{self._spec.name}-idle",
                {"cluster_name": cluster.gke.cluster_name, "emails": self._spec.budget.alert_emails},
                self._on_gcp,
            )
        return Pools(
            by_name=found,
            drivers={},
            host_engine_port=None,
            ready=[*made, *objects, *self._installers(cluster)],
            devices_managed=True,
        )

    def _installers(self, cluster: GkeCluster) -> list[pulumi.Resource]:
        wanted: dict[str, list[str]] = {}
        for pool in self._layout.pools:
            machine = facts.machine_types.get(pool.machine)
            if pool.rdma and machine is not None and machine.fabric is not None:
                wanted.setdefault(machine.fabric, []).append(pool.name)
        if not wanted:
            return []
        installed: list[InstalledArgs] = [
            {"fabric": fabric, "pools": pools} for fabric, pools in wanted.items()
        ]
        name = f"{self._spec.name}-fabrics"
        return [GcpFabricInstallers(name, {"fabrics": installed}, cluster.inside)]

    def store(self, cluster: GkeCluster) -> GcpStore:
        """Buckets, and optionally Managed Lustre and Filestore, with alerts on usage."""
        store = store_on_gcp(
            self._spec,
            self._layout,
            self._on,
            number=self._number,
            network=cluster.network,
            clients=self._ranges.nodes,
            opts=self._on_gcp,
        )
        if storage_alarms.on_gcp(self._spec):
            alerts_on_gcp(self._spec, store.tiers, self._on_gcp)
        return store

    def tracking(self, cluster: GkeCluster, store: GcpStore) -> Tracking:
        """MLflow, with Cloud SQL and Secret Manager behind it."""
        return tracking_on_gcp(
            self._spec,
            self._on,
            number=self._number,
            gke=cluster.gke,
            network=cluster.network,
            tiers=store.tiers,
            opts=cluster.on_both,
        )

    def teams(self, cluster: GkeCluster, store: GcpStore) -> Mapping[str, TeamData]:
        """Members' access to the cluster; for each team folders in the buckets, with access."""
        return teams_on_gcp(
            self._spec,
            self._on,
            number=self._number,
            workload_pool=cluster.gke.workload_pool,
            tiers=store.tiers,
            shared=store.checkpoints,
            own_bindings=self._own_bindings,
            opts=self._on_gcp,
        )

    def alerting(self, cluster: GkeCluster) -> Alerting:
        """E-mail on log lines of a pod."""
        return alerting_on_gcp(self._spec, self._on, cluster.gke, self._on_gcp)

    def budget(self) -> pulumi.Output[str]:
        """A budget of Cloud Billing."""
        wanted = self._spec.budget
        ((label, value),) = gcp_labels(self._budget_labels()).items()
        args: GcpBudgetArgs = {
            "project_number": self._number,
            "billing_account": self._on.billing_account,
            "label_key": label,
            "label_value": value,
            "monthly_limit_usd": wanted.monthly_usd,
            "currency": budget_currency(self._on),
            "alert_emails": wanted.alert_emails,
        }
        if further := self._projects_of_budget():
            args["further_project_numbers"] = further
        return GcpBudget(f"{self._spec.name}-budget", args, self._on_gcp).budget_name

    def _projects_of_budget(self) -> Sequence[pulumi.Output[str]]:
        """Numbers of further projects whose cost the budget counts."""
        return ()

    def _budget_labels(self) -> Mapping[str, str]:
        return lasting_tags(self._spec.name)

    def validation(self, cluster: GkeCluster, store: GcpStore, pods: ServiceAccount) -> ValidationAccess:
        """A folder for results; with a schedule, also a topic, and e-mail on log lines."""
        return validation_on_gcp(
            self._spec,
            self._on,
            number=self._number,
            gke=cluster.gke,
            store=store,
            pods=pods,
            opts=self._on_gcp,
        )
