"""AWS: one EKS cluster with GPU pools, buckets, file systems, tracking and a budget."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pulumi

from components.aws.cluster.autoscaling import AwsAutoscaling
from components.aws.cluster.cluster_args import AwsClusterArgs, SystemPoolArgs
from components.aws.cluster.eks import AwsCluster
from components.aws.cluster.kubeconfig import kubeconfig
from components.aws.money.budget import AwsBudget, AwsBudgetArgs
from components.aws.network.vpc import AwsNetwork
from components.aws.pools.cpu_pool import AwsCpuPool
from components.aws.pools.gpu_pool import AwsGpuPool
from components.aws.pools.live_size import GroupName, LiveSizeArgs, live_sizes
from components.aws.pools.offers import HOST_ENGINE_PORT, efa_charts
from components.aws.pools.zone_groups import group_of_zone
from components.aws.storage.disks import AwsDisks
from components.aws.validation.alert_topic import AwsAlertTopic, AwsAlertTopicArgs
from components.kubernetes.network_policies import PlatformNetwork
from infra.alarms import storage as storage_alarms
from infra.catalog.aws import facts
from infra.naming import TAG_PREFIX, lasting_tags
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import ClusterLayout, PoolSpec
from infra.stackspec.model import demanded
from stacks.clouds.aws.alerting import alerting_on_aws
from stacks.clouds.aws.options import on_aws
from stacks.clouds.aws.pools import cpu_pool_args, pool_args, pool_record, sharing_of
from stacks.clouds.aws.storage import AwsStore, alarms_on_aws, store_on_aws
from stacks.clouds.aws.teams import teams_on_aws
from stacks.clouds.aws.tracking import tracking_on_aws
from stacks.clouds.aws.validation import validation_on_aws
from stacks.clouds.tags import owners_tags
from stacks.parts import Alerting, Cluster, Pools, ServiceAccount, TeamData, Tracking, ValidationAccess
from stacks.providers import aws_provider, kubernetes_provider
from stacks.sharing import sharing_args

# EKS add-ons of every cluster, including drivers of its file systems.
ADDONS = (
    "vpc-cni",
    "kube-proxy",
    "coredns",
    "eks-pod-identity-agent",
    "eks-node-monitoring-agent",
    "aws-ebs-csi-driver",
    "aws-efs-csi-driver",
    "aws-fsx-csi-driver",
    "metrics-server",
)


@dataclass(frozen=True)
class EksCluster(Cluster):
    """A cluster on AWS, with its network."""

    eks: AwsCluster
    network: AwsNetwork
    subnet_ids: list[pulumi.Input[str]]
    """A private subnet per zone."""
    on_both: pulumi.ResourceOptions
    """Options for resources on AWS and in the cluster: both providers."""


class AwsCloud:
    """`stacks.parts.ClusterCloud` on AWS. Settings of AWS are in the spec's part `on`."""

    def __init__(
        self,
        spec: StackSpec,
        layout: ClusterLayout,
        on: AwsSpec,
        *,
        cluster: str = "",
        system_zone: str | None = None,
    ) -> None:
        """`cluster`: its name among several ones; `system_zone`: that of system nodes. None: all zones."""
        self._spec, self._layout, self._on, self._cluster = spec, layout, on, cluster
        self._system_zone = system_zone
        # The name of a stack never changes; profile, owner, cost center and additional tags may change while
        # jobs run.
        self._tags = lasting_tags(spec.name)
        self._launch_tags = owners_tags(spec)
        self._node_image = facts.releases.node_image(layout.kubernetes_version, on.node_image)
        self._provider = aws_provider(
            f"{spec.name}-aws",
            on,
            region=spec.region,
            tags={**self._launch_tags, **self._tags},
        )
        self._on_aws = on_aws(on, self._provider)
        groups = [
            GroupName(f"{spec.name}-cluster-system"),
            *(self._group(pool, zone) for pool in layout.pools for zone in pool.zones),
        ]
        self._live = live_sizes(spec.name, groups, pulumi.InvokeOptions(provider=self._provider))

    def cluster(self) -> EksCluster:
        """A VPC and an EKS cluster in it."""
        name, region = self._spec.name, self._spec.region
        network = self._network()
        eks = self._eks(network)
        login = pulumi.Output.all(
            cluster=eks.cluster_name, endpoint=eks.endpoint, certificate_authority=eks.certificate_authority
        ).apply(lambda known: kubeconfig(**known, region=region))
        kubernetes = kubernetes_provider(f"{name}-kubernetes", kubeconfig=login)
        return EksCluster(
            name=eks.cluster_name,
            kubeconfig=login,
            inside=pulumi.ResourceOptions(providers=[kubernetes]),
            # Through interfaces in the cluster's subnets (EKS best practices guide, "VPC and subnet
            # considerations": the control plane connects to webhooks through them).
            control_plane=PlatformNetwork("eks", [self._layout.network_cidr]),
            eks=eks,
            network=network,
            subnet_ids=[network.private_subnet_id_by_zone[zone] for zone in self._layout.zones],
            on_both=on_aws(self._on, self._provider, kubernetes),
        )

    def _network(self) -> AwsNetwork:
        return AwsNetwork(
            f"{self._spec.name}-network",
            {
                "region": self._spec.region,
                "cidr": self._layout.network_cidr,
                "zones": self._layout.zones,
                "nat_per_zone": self._on.nat == "per_zone",
                "flow_log_retention_days": self._spec.data.log_retention_days,
                "interface_endpoints": self._on.endpoints,
                "load_balancer": self._on.load_balancer is not None,
            },
            self._on_aws,
        )

    def _eks(self, network: AwsNetwork) -> AwsCluster:
        pool = self._layout.system_pool
        size: SystemPoolArgs = {
            "machine": pool.machine,
            "min_nodes": pool.min_nodes,
            "max_nodes": pool.max_nodes,
        }
        if self._system_zone is not None:
            size["subnet_ids"] = [network.private_subnet_id_by_zone[self._system_zone]]
        if (live := self._live.get(f"{self._spec.name}-cluster-system")) is not None:
            size["live"] = live
        version = self._layout.kubernetes_version
        args: AwsClusterArgs = {
            "region": self._spec.region,
            "name": self._spec.name,
            "kubernetes_version": version,
            "subnet_ids": network.private_subnet_ids,
            "endpoint_public_access_cidrs": self._layout.api_access,
            "admin_principal_arns": self._on.admin_arns,
            "log_retention_days": self._spec.data.log_retention_days,
            "system_pool": size,
            "addons": ADDONS,
            "addon_versions": {
                name: found
                for name in ADDONS
                if (found := facts.releases.addon(name, version, self._on.addon_versions))
            },
            "tags": self._tags,
            "launch_tags": self._launch_tags,
            "deletion_protection": self._spec.data.protect,
        }
        if self._on.disk_key_arn is not None:
            args["disk_key_arn"] = self._on.disk_key_arn
        if self._node_image is not None:
            args["node_image"] = self._node_image
        return AwsCluster(f"{self._spec.name}-cluster", args, self._on_aws)

    def pools(self, cluster: EksCluster) -> Pools:
        """Managed node groups, and Cluster Autoscaler."""
        assert self._layout.idle_minutes is not None  # by the rules of the spec
        groups = self.node_groups(cluster)
        scaling = AwsAutoscaling(
            f"{self._spec.name}-autoscaling",
            {
                "region": self._spec.region,
                "cluster_name": self._spec.name,
                "cluster_arn": cluster.eks.cluster_arn,
                "idle_minutes": self._layout.idle_minutes,
            },
            cluster.on_both,
        )
        with_efa = [pool.name for pool in self._layout.pools if pool.rdma]
        return Pools(
            by_name={
                pool.name: pool_record(pool, self._on, groups[pool.name].labels, region=self._spec.region)
                for pool in self._layout.pools
            },
            drivers=efa_charts(demanded(self._on.efa_driver), with_efa, self._layout.kubernetes_version),
            host_engine_port=HOST_ENGINE_PORT,
            sharing=[
                sharing_args(sharing)
                for pool in self._layout.pools
                if (sharing := sharing_of(pool, self._on))
            ],
            ready=[scaling, *groups.values()],
        )

    def node_groups(self, cluster: EksCluster) -> Mapping[str, AwsGpuPool | AwsCpuPool]:
        """Managed node groups by pool."""
        return {pool.name: self._node_group(cluster, pool) for pool in self._layout.pools}

    def _group(self, pool: PoolSpec, zone: str) -> GroupName:
        return group_of_zone(f"{self._spec.name}-{pool.name}", zone)

    def _live_zones(self, pool: PoolSpec) -> Mapping[str, LiveSizeArgs]:
        by_zone = {zone: self._live.get(self._group(pool, zone).name) for zone in pool.zones}
        return {zone: live for zone, live in by_zone.items() if live is not None}

    def _node_group(self, cluster: EksCluster, pool: PoolSpec) -> AwsGpuPool | AwsCpuPool:
        shared = self._spec.data.shared_fs
        if pool.machine in facts.cpu_types:
            without = cpu_pool_args(
                pool,
                eks=cluster.eks,
                network=cluster.network,
                live=self._live_zones(pool),
                node_image=self._node_image,
                tags=self._tags,
                launch_tags=self._launch_tags,
                cluster=self._cluster,
            )
            return AwsCpuPool(f"{self._spec.name}-{pool.name}", without, self._on_aws)
        args = pool_args(
            pool,
            self._on,
            eks=cluster.eks,
            network=cluster.network,
            live=self._live_zones(pool),
            node_image=self._node_image,
            lustre_over_efa=shared is not None and shared.rdma,
            tags=self._tags,
            launch_tags=self._launch_tags,
            cluster=self._cluster,
        )
        return AwsGpuPool(f"{self._spec.name}-{pool.name}", args, self._on_aws)

    def store(self, cluster: EksCluster, *, members_on_nodes: bool = False) -> AwsStore:
        """Buckets, disks, and optionally FSx for Lustre and EFS, with alarms on usage.

        `members_on_nodes`: pods mount all homes, and members are users of the pods.
        """
        disks = AwsDisks(f"{self._spec.name}-disks", {"key_arn": cluster.eks.disk_key_arn}, cluster.inside)
        store = store_on_aws(
            self._spec,
            self._on,
            eks=cluster.eks,
            network=cluster.network,
            subnet_ids=cluster.subnet_ids,
            opts=self._on_aws,
            members_on_nodes=members_on_nodes,
        )
        if storage_alarms.on_aws(self._spec):
            alarms_on_aws(self._spec, store.tiers, self._alert_topic, self._on_aws)
        return replace(store, disk_class=disks.storage_class)

    def tracking(self, cluster: EksCluster, store: AwsStore) -> Tracking:
        """MLflow, with Aurora and Secrets Manager behind it and optionally a load balancer."""
        return tracking_on_aws(
            self._spec,
            self._layout,
            self._on,
            eks=cluster.eks,
            network=cluster.network,
            tiers=store.tiers,
            on_aws=self._on_aws,
            on_both=cluster.on_both,
        )

    def teams(self, cluster: EksCluster, store: AwsStore) -> Mapping[str, TeamData]:
        """Access entries; for each team a role, and an access point to its home."""
        return teams_on_aws(self._spec, cluster.eks, store.tiers, store.checkpoints, self._on_aws)

    def alerting(self, cluster: EksCluster) -> Alerting:
        """Topics of SNS, and logs of pods in CloudWatch."""
        both = {"on_aws": self._on_aws, "on_both": cluster.on_both}
        return alerting_on_aws(self._spec, cluster.eks, self._alert_topic, **both)

    def budget(self) -> pulumi.Output[str]:
        """AWS Budgets and Cost Anomaly Detection."""
        wanted = self._spec.budget
        args: AwsBudgetArgs = {
            "stack_tag_key": f"{TAG_PREFIX}:stack",
            "stack_tag_value": self._spec.name,
            "monthly_limit_usd": wanted.monthly_usd,
            "alert_emails": wanted.alert_emails,
        }
        if others := self._stacks_of_budget():
            args["further_tag_values"] = others
        if wanted.anomaly_usd is not None:
            args["anomaly_threshold_usd"] = wanted.anomaly_usd
        return AwsBudget(f"{self._spec.name}-budget", args, self._on_aws).budget_name

    def _stacks_of_budget(self) -> Sequence[str]:
        """Further stacks whose cost the budget counts."""
        return ()

    def validation(self, cluster: EksCluster, store: AwsStore, pods: ServiceAccount) -> ValidationAccess:
        """A folder for results; with a schedule, also a topic."""
        topic = self._alert_topic.topic_arn if self._spec.smoke.schedule else None
        return validation_on_aws(
            self._spec, eks=cluster.eks, store=store, pods=pods, topic=topic, opts=self._on_aws
        )

    @functools.cached_property
    def _alert_topic(self) -> AwsAlertTopic:
        emails = self._spec.budget.alert_emails
        args: AwsAlertTopicArgs = {"emails": emails}
        if storage_alarms.on_aws(self._spec):
            args["alarms_of"] = self._spec.region
        return AwsAlertTopic(f"{self._spec.name}-training-alerts", args, self._on_aws)
