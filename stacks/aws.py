"""The medium profile on AWS: one EKS cluster with GPU pools, shared storage, queues, tracking and budgets."""

from typing import Any

import pulumi

from components.aws.cluster.autoscaling import AwsAutoscaling
from components.aws.cluster.eks import AwsCluster
from components.aws.money.budget import AwsBudget
from components.aws.network.vpc import AwsNetwork
from components.aws.pools.gpu_pool import AwsGpuPool
from components.aws.pools.gpu_pool_args import AwsGpuPoolArgs
from components.aws.storage.tiers import AwsStorage, AwsStorageArgs
from components.aws.tracking.server import AwsTracking
from components.kubernetes.accelerators import Accelerators
from components.kubernetes.queueing.queues import Queueing
from components.kubernetes.queueing.quotas import FlavorArgs
from infra.catalog.aws import facts
from infra.naming import TAG_PREFIX, stack_tags
from infra.providers import aws_provider, kubeconfig, kubernetes_provider
from infra.stackspec import StackSpec
from infra.stackspec.clouds import AwsSpec
from infra.stackspec.layouts import MediumLayout, PoolSpec
from stacks.aws_validation import AwsValidation
from stacks.nodes import cores_for_jobs, memory_for_jobs_gib

# EKS add-ons of every medium cluster; the file-system drivers are there because the file systems are.
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


# The words of the component for how nodes are bought, where they differ from the spec.
_CAPACITIES = {"block": "capacity_block"}


class MediumStack:
    """Builds the components in the order in which they need each other; each method adds one part."""

    def __init__(self, spec: StackSpec, layout: MediumLayout, cloud: AwsSpec) -> None:
        self.spec, self.layout, self.cloud = spec, layout, cloud
        self.name = spec.name
        self.tags = stack_tags(
            stack=spec.name,
            profile=spec.profile,
            owner=spec.owner,
            cost_center=spec.cost_center,
            extra=spec.tags,
        )
        provider = aws_provider(f"{spec.name}-aws", region=spec.region, tags=self.tags)
        self.on_aws = pulumi.ResourceOptions(providers=[provider])
        self.network = self._network()
        self.cluster = self._cluster()
        self.kubeconfig = pulumi.Output.all(
            cluster=self.cluster.cluster_name,
            endpoint=self.cluster.endpoint,
            certificate_authority=self.cluster.certificate_authority,
        ).apply(lambda known: kubeconfig(**known, region=spec.region))
        kubernetes = kubernetes_provider(f"{spec.name}-kubernetes", kubeconfig=self.kubeconfig)
        self.on_cluster = pulumi.ResourceOptions(providers=[kubernetes])
        self.on_both = pulumi.ResourceOptions(providers=[provider, kubernetes])
        self.pools = {pool.name: self._pool(pool) for pool in layout.pools}
        self.storage = self._storage()
        self.accelerators = self._accelerators()
        self.autoscaling = self._autoscaling()
        self.queueing = self._queueing()
        self.tracking = self._tracking()
        self.budget = self._budget()
        self.validation = self._validation() if spec.smoke.enabled else None

    def _network(self) -> AwsNetwork:
        return AwsNetwork(
            f"{self.name}-network",
            {
                "region": self.spec.region,
                "cidr": self.layout.network_cidr,
                "zones": self.layout.zones,
                "nat_per_zone": self.cloud.nat == "per_zone",
                "flow_log_retention_days": self.spec.data.log_retention_days,
                "interface_endpoints": self.cloud.endpoints,
            },
            self.on_aws,
        )

    def _cluster(self) -> AwsCluster:
        pool = self.layout.system_pool
        return AwsCluster(
            f"{self.name}-cluster",
            {
                "region": self.spec.region,
                "name": self.name,
                "kubernetes_version": self.layout.kubernetes_version,
                "subnet_ids": self.network.private_subnet_ids,
                "endpoint_public_access_cidrs": self.layout.api_access,
                "admin_principal_arns": self.cloud.admin_arns,
                "log_retention_days": self.spec.data.log_retention_days,
                "system_pool": {
                    "instance_types": [pool.machine],
                    "min_size": pool.min_nodes,
                    "max_size": pool.max_nodes,
                    "desired_size": pool.min_nodes,
                },
                "addons": ADDONS,
                "tags": self.tags,
                "deletion_protection": self.spec.data.protect,
            },
            self.on_aws,
        )

    def _pool(self, pool: PoolSpec) -> AwsGpuPool:
        subnets = self.network.private_subnet_id_by_zone
        args: AwsGpuPoolArgs = {
            "pool": pool.name,
            "purpose": pool.purpose,
            "cluster_name": self.cluster.cluster_name,
            "kubernetes_version": self.cluster.kubernetes_version,
            "node_role_arn": self.cluster.node_role_arn,
            "cluster_security_group_id": self.cluster.security_group_id,
            "efa_security_group_id": self.network.efa_security_group_id,
            "instance_type": pool.machine,
            "subnet_ids": [subnets[zone] for zone in pool.zones],
            "efa": pool.rdma,
            "capacity": _CAPACITIES.get(pool.purchase.kind, pool.purchase.kind),
            "min_size": pool.min_nodes,
            "max_size": pool.max_nodes,
            "desired_size": pool.min_nodes,
            "disk_gib": pool.disk_gib,
            "labels": {},
            "tags": self.tags,
        }
        if pool.purchase.kind in ("reserved", "block"):
            args["reservation_id"] = pool.purchase.id
        return AwsGpuPool(f"{self.name}-{pool.name}", args, self.on_aws)

    def _private_subnets(self) -> list[pulumi.Input[str]]:
        return [self.network.private_subnet_id_by_zone[zone] for zone in self.layout.zones]

    def _storage(self) -> AwsStorage:
        wanted = self.spec.data
        subnets = self.network.private_subnet_id_by_zone
        args: AwsStorageArgs = {
            "region": self.spec.region,
            "vpc_id": self.network.vpc_id,
            "subnet_ids": self._private_subnets(),
            "client_security_group_ids": [self.cluster.security_group_id],
            "checkpoint_retention_days": wanted.checkpoint_retention_days,
            "noncurrent_days": wanted.noncurrent_days,
            "log_retention_days": self.spec.data.log_retention_days,
            "homes": wanted.homes,
            "force_destroy": not wanted.protect,
            "deletion_protection": wanted.protect,
        }
        if wanted.shared_fs:
            args["lustre"] = {
                "capacity_gib": wanted.shared_fs.capacity_gib,
                "throughput_mb_s_per_tib": wanted.shared_fs.throughput_mb_s_per_tib,
                "subnet_id": subnets[wanted.shared_fs.zone],
                "efa": wanted.shared_fs.rdma,
            }
        return AwsStorage(f"{self.name}-storage", args, self.on_aws)

    def _accelerators(self) -> Accelerators:
        return Accelerators(
            f"{self.name}-accelerators",
            {
                "gpu_pools": [pool.name for pool in self.layout.pools],
                "efa_pools": [pool.name for pool in self.layout.pools if pool.rdma],
                "efa_driver": self._efa_driver(),
                "kubernetes_version": self.layout.kubernetes_version,
            },
            self.on_cluster,
        )

    def _efa_driver(self) -> str:
        return self.cloud.efa_driver if any(pool.rdma for pool in self.layout.pools) else "none"

    def _autoscaling(self) -> AwsAutoscaling:
        return AwsAutoscaling(
            f"{self.name}-autoscaling",
            {
                "region": self.spec.region,
                "cluster_name": self.name,
                "cluster_arn": self.cluster.cluster_arn,
                "idle_minutes": self.layout.idle_minutes,
            },
            self.on_both,
        )

    def _queueing(self) -> Queueing:
        return Queueing(
            f"{self.name}-queueing",
            {
                "flavors": [self._flavor(pool) for pool in self.layout.pools],
                "teams": [
                    {"name": team.name, "weight": team.weight, "gpus": team.gpus} for team in self.spec.teams
                ],
                "gate": {
                    "flavor": self.spec.smoke.pool,
                    "nodes": self.spec.smoke.nodes if self.spec.smoke.enabled else 0,
                    "scheduled": self.spec.smoke.enabled and self.spec.smoke.schedule is not None,
                },
                "efa_driver": self._efa_driver(),
            },
            self.on_cluster,
        )

    def _flavor(self, pool: PoolSpec) -> FlavorArgs:
        machine = facts.instance_type(pool.machine)
        return {
            "name": pool.name,
            "node_labels": {"trainstack.dev/pool": pool.name},
            "nodes": pool.max_nodes,
            "cpu": cores_for_jobs(machine),
            "memory_gib": memory_for_jobs_gib(machine, efa=pool.rdma),
            "gpus": machine.accelerator_count,
            "efa": machine.efa_interfaces if pool.rdma else 0,
        }

    def _tracking(self) -> AwsTracking:
        wanted = self.spec.tracking
        return AwsTracking(
            f"{self.name}-tracking",
            {
                "region": self.spec.region,
                "cluster_name": self.cluster.cluster_name,
                "cluster_arn": self.cluster.cluster_arn,
                "vpc_id": self.network.vpc_id,
                "subnet_ids": self._private_subnets(),
                "client_security_group_ids": [self.cluster.security_group_id],
                "artifact_bucket": self.storage.artifact_bucket,
                "artifact_bucket_arn": self.storage.artifact_bucket_arn,
                "kms_key_arn": self.storage.kms_key_arn,
                "log_retention_days": self.spec.data.log_retention_days,
                "min_acu": self.cloud.database.min_acu,
                "max_acu": self.cloud.database.max_acu,
                "image": wanted.image,
                "replicas": wanted.replicas,
                "workers": wanted.workers,
                "deletion_protection": self.spec.data.protect,
            },
            self.on_both,
        )

    def _budget(self) -> AwsBudget:
        wanted = self.spec.budget
        return AwsBudget(
            f"{self.name}-budget",
            {
                "stack_tag_key": f"{TAG_PREFIX}:stack",
                "stack_tag_value": self.name,
                "team_tag_key": f"{TAG_PREFIX}:team",
                "monthly_limit_usd": wanted.monthly_usd,
                "teams": {team.name: team.monthly_budget_usd for team in self.spec.teams},
                "alert_emails": wanted.alert_emails,
                "anomaly_threshold_usd": wanted.anomaly_usd,
            },
            self.on_aws,
        )

    def _validation(self) -> AwsValidation:
        return AwsValidation(
            self.spec,
            self.layout,
            cluster=self.cluster,
            storage=self.storage,
            tracking=self.tracking,
            queueing=self.queueing,
            pool_labels=self.pools[self.spec.smoke.pool].labels,
            efa_driver=self._efa_driver(),
            after=[self.accelerators, self.autoscaling, self.storage, self.budget, *self.pools.values()],
            on_aws=self.on_aws,
            on_cluster=self.on_cluster,
        )

    def outputs(self) -> dict[str, Any]:
        """What the stack tells the world (`infra.outputs.StackOutputs`)."""
        spec = self.spec
        return {
            "stack": spec.name,
            "cloud": spec.cloud,
            "region": spec.region,
            "profile": spec.profile,
            "owner": spec.owner,
            "cost_center": spec.cost_center,
            "cluster_name": self.cluster.cluster_name,
            "kubeconfig": self.kubeconfig,
            "mlflow_url": self.tracking.url,
            "mlflow_admin_secret": self.tracking.admin_secret_arn,
            "checkpoint_uri": pulumi.Output.concat("s3://", self.storage.checkpoint_bucket),
            "dataset_uri": pulumi.Output.concat("s3://", self.storage.dataset_bucket),
            "artifact_uri": pulumi.Output.concat("s3://", self.storage.artifact_bucket),
            "pools": list(self.pools),
            "teams": self.queueing.team_namespaces.apply(
                lambda namespaces: [
                    {"name": team, "namespace": namespace, "queue": "default"}
                    for team, namespace in namespaces.items()
                ]
            ),
            "budgets": self.budget.budget_names,
            "alarm_topic": self.budget.topic_arn,
            "smoke": None if self.validation is None else self.validation.outputs(),
        }


def compose(spec: StackSpec, layout: MediumLayout, cloud: AwsSpec) -> dict[str, Any]:
    """Declare the stack."""
    return MediumStack(spec, layout, cloud).outputs()
