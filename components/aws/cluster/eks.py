"""The Kubernetes control plane of a stack, its identities, and the nodes its own services run on."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import AwsAccount, current_account, ebs_key_arn
from components.aws.cluster import addons
from components.aws.cluster.access import access_entry, label
from components.aws.cluster.cluster_args import AwsClusterArgs, cluster_problems, is_graviton
from components.aws.encryption import encryption_key
from components.aws.logs import log_group, logs_may_use
from components.aws.pools import nodes
from components.aws.pools.live_size import scaling
from components.base import Component, Options
from components.ordering import after
from infra.catalog.aws import facts
from infra.catalog.aws.model import EksAddon
from infra.catalog.aws.pools import SYSTEM_DISK_GIB
from infra.errors import UserError

LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
# The nodes of the stack's own services have them.
SYSTEM_LABELS = {"trainstack.dev/pool": "system"}
# Scoring of nodes by the scheduler.
SCORED = {"nvidia.com/gpu": 10, "cpu": 1, "memory": 1}
_NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")
_ADMIN_POLICY = "AmazonEKSClusterAdminPolicy"


class AwsCluster(Component):
    """EKS with access entries, encrypted secrets and logs, add-ons with pod identity, and a system pool.

    Outputs carry the order of creation and deletion. `endpoint` and `certificate_authority` depend on the
    admins' access, the system nodes and the add-ons: what is deployed through a provider made from them can
    run at once, and is destroyed while access, nodes and drivers still work. `node_role_arn` depends on the
    role's policies and the CNI: a node group is destroyed before the CNI, which releases the nodes' network
    interfaces.
    """

    cluster_name: pulumi.Output[str]
    """Name of the cluster."""
    cluster_arn: pulumi.Output[str]
    """ARN of the cluster."""
    endpoint: pulumi.Output[str]
    """URL of the Kubernetes API."""
    certificate_authority: pulumi.Output[str]
    """The API's certificate authority, base64."""
    kubernetes_version: pulumi.Output[str]
    """Minor version the control plane runs."""
    security_group_id: pulumi.Output[str]
    """The security group that EKS created for the control plane and all nodes."""
    node_role_arn: pulumi.Output[str]
    """Role for node groups."""
    kms_key_arn: pulumi.Output[str]
    """The key of Kubernetes secrets and control-plane logs."""

    def __init__(self, name: str, args: AwsClusterArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        problems = cluster_problems(args, facts.eks.addons)
        if problems:
            raise UserError(problems)
        self._prefix = name
        self._account = current_account(self)
        self._partition = self._account.apply(lambda account: account.partition)
        # A plain attribute: for nodes and volumes inside one program, not part of the schema.
        self._own_disk_key = args.get("disk_key_arn")
        self.disk_key_arn = pulumi.Output.from_input(self._own_disk_key or ebs_key_arn(self))

        self._key = encryption_key(
            self,
            f"{name}-secrets",
            account=self._account,
            purpose=f"Kubernetes secrets and control-plane logs of {args['name']}",
            statements=logs_may_use(args["region"], control_plane_log_group(args["name"])),
        )
        self._cluster = self._control_plane(args)
        access = self._admin_access(args["admin_principal_arns"])
        self._volume_tags = {**args.get("launch_tags", {}), **args.get("tags", {})}
        chosen = [facts.eks.addon(addon) for addon in args["addons"]]
        early = [addon for addon in chosen if addon.name in addons.BEFORE_NODES]
        versions = args.get("addon_versions", {})
        # Plain attributes: handles inside one program, not part of the schema.
        self.roles_without_rights: dict[str, pulumi.Output[str]] = {}
        first = [self._addon(addon, versions, []) for addon in early]
        role, policies = self._node_role()
        self.node_role_arn = after(role.arn, [*policies, *first])
        self.system_node_group = self._system_pool(args)
        tags = nodes.GroupTags(self, f"{name}-system", self.system_node_group)
        tags.at_launch(args.get("launch_tags", {}))
        self.addons = [
            *first,
            *(
                self._addon(addon, versions, [self.system_node_group])
                for addon in chosen
                if addon not in early
            ),
        ]

        self.cluster_name = self._cluster.name
        self.cluster_arn = self._cluster.arn
        usable = [*access, *self.addons]
        self.endpoint = after(self._cluster.endpoint, usable)
        self.certificate_authority = after(self._cluster.certificate_authority.data, usable)
        self.kubernetes_version = self._cluster.version
        self.security_group_id = self._cluster.vpc_config.cluster_security_group_id
        self.kms_key_arn = self._key.arn
        self.register_declared()

    def _control_plane(self, args: AwsClusterArgs) -> aws.eks.Cluster:
        logs = log_group(
            self,
            f"{self._prefix}-logs",
            log_group_name=control_plane_log_group(args["name"]),
            retention_days=args["log_retention_days"],
            key_arn=self._key.arn,
        )
        role = iam.role(
            self,
            f"{self._prefix}-cluster-role",
            self._account.apply(lambda account: _cluster_trust(account, args)),
            description=f"Control plane of {args['name']}",
        )
        policy = self._attach("cluster", role, "AmazonEKSClusterPolicy")
        public_cidrs = args["endpoint_public_access_cidrs"]
        return aws.eks.Cluster(
            f"{self._prefix}-cluster",
            name=args["name"],
            role_arn=role.arn,
            version=args["kubernetes_version"],
            # API only: no aws-auth ConfigMap, in which one bad edit locks everybody out. The creator of
            # the cluster gets no hidden access: the only admins are the access entries below.
            access_config=aws.eks.ClusterAccessConfigArgs(
                authentication_mode="API", bootstrap_cluster_creator_admin_permissions=False
            ),
            bootstrap_self_managed_addons=False,
            deletion_protection=args.get("deletion_protection", False),
            enabled_cluster_log_types=list(LOG_TYPES),
            encryption_config=aws.eks.ClusterEncryptionConfigArgs(
                provider=aws.eks.ClusterEncryptionConfigProviderArgs(key_arn=self._key.arn),
                resources=["secrets"],
            ),
            kube_scheduler_config=_packing(),
            # Upgraded by EKS when standard support ends, never billed for extended support silently.
            upgrade_policy=aws.eks.ClusterUpgradePolicyArgs(support_type="STANDARD"),
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                subnet_ids=args["subnet_ids"],
                endpoint_private_access=True,
                endpoint_public_access=bool(public_cidrs),
                public_access_cidrs=list(public_cidrs) or None,
            ),
            # The policy must outlive the cluster, or EKS cannot delete the network interfaces it created. The
            # log group must exist first, or EKS creates one without key and retention.
            opts=self.child(pulumi.ResourceOptions(depends_on=[policy, logs])),
        )

    def _attach(self, purpose: str, role: aws.iam.Role, policy: str) -> aws.iam.RolePolicyAttachment:
        return aws.iam.RolePolicyAttachment(
            f"{self._prefix}-{purpose}-{policy}",
            role=role.name,
            policy_arn=iam.managed_policy_arn(self._partition, policy),
            opts=self.child(),
        )

    def _admin_access(self, principals: Sequence[str]) -> list[pulumi.Resource]:
        resources: list[pulumi.Resource] = []
        for principal in principals:
            entry = access_entry(self, self._prefix, self._cluster.name, principal)
            admin = aws.eks.AccessPolicyAssociation(
                f"{self._prefix}-admin-{label(principal)}",
                cluster_name=self._cluster.name,
                principal_arn=entry.principal_arn,
                policy_arn=self._partition.apply(
                    lambda partition: f"arn:{partition}:eks::aws:cluster-access-policy/{_ADMIN_POLICY}"
                ),
                access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
                opts=self.child(),
            )
            resources += [entry, admin]
        return resources

    def _addon(
        self, addon: EksAddon, versions: Mapping[str, str], depends_on: Sequence[pulumi.Resource]
    ) -> aws.eks.Addon:
        installed = addons.install(
            self,
            self._prefix,
            addon=addon,
            version=versions.get(addon.name),
            volume_tags=self._volume_tags,
            disk_key_arn=self._own_disk_key,
            cluster=self._cluster,
            partition=self._partition,
            depends_on=depends_on,
        )
        self.roles_without_rights |= installed.roles
        return installed.addon

    def _node_role(self) -> tuple[aws.iam.Role, list[aws.iam.RolePolicyAttachment]]:
        """The permissions of kubelet and no more: the CNI and all other pods have roles of their own."""
        role = iam.role(
            self,
            f"{self._prefix}-node-role",
            iam.trust("ec2.amazonaws.com"),
            description=f"Nodes of {self._prefix}",
        )
        return role, [self._attach("node", role, policy) for policy in _NODE_POLICIES]

    def _system_pool(self, args: AwsClusterArgs) -> aws.eks.NodeGroup:
        pool = args["system_pool"]
        size = scaling(pool["min_nodes"], pool["max_nodes"], pool.get("live"))
        template = aws.ec2.LaunchTemplate(
            f"{self._prefix}-system",
            description=f"System nodes of {args['name']}",
            update_default_version=True,
            block_device_mappings=[nodes.root_volume(SYSTEM_DISK_GIB, self.disk_key_arn)],
            metadata_options=nodes.metadata_options(),
            tag_specifications=nodes.tag_specifications(f"{self._prefix}-system", args.get("tags", {})),
            opts=self.child(),
        )
        arm = is_graviton(pool["machine"])
        return aws.eks.NodeGroup(
            nodes.group_name(f"{self._prefix}-system"),
            cluster_name=self._cluster.name,
            node_role_arn=self.node_role_arn,
            subnet_ids=pool.get("subnet_ids", args["subnet_ids"]),
            version=self._cluster.version,
            release_version=args.get("node_image"),
            ami_type="AL2023_ARM_64_STANDARD" if arm else "AL2023_x86_64_STANDARD",
            capacity_type="ON_DEMAND",
            instance_types=[pool["machine"]],
            launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
                id=template.id, version=template.latest_version.apply(str)
            ),
            scaling_config=size.config,
            update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
            node_repair_config=aws.eks.NodeGroupNodeRepairConfigArgs(enabled=True),
            labels=SYSTEM_LABELS,
            opts=self.child(pulumi.ResourceOptions(ignore_changes=size.ignored)),
        )


def control_plane_log_group(cluster_name: str) -> str:
    """The log group of EKS; it accepts no other name."""
    return f"/aws/eks/{cluster_name}/cluster"


def _packing() -> aws.eks.ClusterKubeSchedulerConfigArgs:
    """Pack pods onto nodes whose GPUs are in use already, so that whole nodes stay free for whole-node jobs.

    The scheduler's default, LeastAllocated, spreads one-GPU pods over as many nodes as there are. A GPU
    counts ten times a core's share, and only for pods that request one; running pods stay where they are.
    These are GPUs of the device plugin: devices by claim (DRA) are not scored. Source: EKS User Guide,
    control-plane-configuration, read 2026-11-25 (EKS 1.31 and later; its resources and weights).
    """
    node = aws.eks.ClusterKubeSchedulerConfigNodeResourcesFitScoringStrategyResourceArgs
    return aws.eks.ClusterKubeSchedulerConfigArgs(
        node_resources_fit=aws.eks.ClusterKubeSchedulerConfigNodeResourcesFitArgs(
            scoring_strategy=aws.eks.ClusterKubeSchedulerConfigNodeResourcesFitScoringStrategyArgs(
                type="MostAllocated",
                resources=[node(name=name, weight=weight) for name, weight in SCORED.items()],
            )
        )
    )


def _cluster_trust(account: AwsAccount, args: AwsClusterArgs) -> str:
    arn = f"arn:{account.partition}:eks:{args['region']}:{account.id}:cluster/{args['name']}"
    return iam.trust("eks.amazonaws.com", conditions=iam.from_account(account.id, arn))
