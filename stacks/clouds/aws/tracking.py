"""The tracking server of a stack on AWS, and its load balancer."""

import pulumi

from components.aws.cluster.eks import SYSTEM_LABELS, AwsCluster
from components.aws.network.subnets import plan_subnets
from components.aws.network.vpc import AwsNetwork
from components.aws.pod_role import pod_identity
from components.aws.storage.tiers import AwsStorage
from components.aws.tracking.load_balancer import NODE_PORT, AwsLoadBalancer
from components.aws.tracking.server import SECRET_STORE, AwsTracking, AwsTrackingArgs
from components.kubernetes.tracking.pod import DoorArgs
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec, LoadBalancerSpec
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.model import demanded
from stacks.parts import Tracking, WayIn


def tracking_on_aws(
    spec: StackSpec,
    layout: ClusterLayout,
    on: AwsSpec,
    *,
    eks: AwsCluster,
    network: AwsNetwork,
    tiers: AwsStorage,
    on_aws: pulumi.ResourceOptions,
    on_both: pulumi.ResourceOptions,
) -> Tracking:
    """MLflow, with Aurora and Secrets Manager behind it and optionally a load balancer."""
    wanted = on.load_balancer
    served, database = demanded(spec.tracking), demanded(on.database)
    args: AwsTrackingArgs = {
        "region": spec.region,
        "cluster_name": eks.cluster_name,
        "cluster_arn": eks.cluster_arn,
        "vpc_id": network.vpc_id,
        "subnet_ids": [network.private_subnet_id_by_zone[zone] for zone in layout.zones],
        "client_security_group_ids": [eks.security_group_id],
        "artifact_bucket": tiers.artifact_bucket,
        "artifact_bucket_arn": tiers.artifact_bucket_arn,
        "kms_key_arn": tiers.kms_key_arn,
        "log_retention_days": spec.data.log_retention_days,
        "min_acu": database.min_acu,
        "max_acu": database.max_acu,
        "image": served.image,
        "replicas": served.replicas,
        "workers": served.workers,
        "deletion_protection": spec.data.protect,
        "last_snapshot": spec.data.on_destroy == "keep",
    }
    if wanted is not None:
        args["door"] = _door(spec, layout, wanted)
    server = AwsTracking(f"{spec.name}-tracking", args, on_both)
    return Tracking(
        url=server.url,
        namespace=server.namespace,
        admin_secret=server.admin_secret_arn,
        secret_store=SECRET_STORE,
        grants=pod_identity(spec.region),
        image=served.image,
        way_in=(
            _way_in(spec, wanted, on_aws, eks=eks, network=network, tiers=tiers)
            if wanted is not None
            else None
        ),
    )


def _door(spec: StackSpec, layout: ClusterLayout, wanted: LoadBalancerSpec) -> DoorArgs:
    subnets = plan_subnets(layout.network_cidr, spec.region, layout.zones)
    return {
        "host": wanted.host,
        "node_port": NODE_PORT,
        "cidrs": [zone.balancer for zone in subnets],
        "node_labels": SYSTEM_LABELS,
    }


def _way_in(
    spec: StackSpec,
    wanted: LoadBalancerSpec,
    opts: pulumi.ResourceOptions,
    *,
    eks: AwsCluster,
    network: AwsNetwork,
    tiers: AwsStorage,
) -> WayIn:
    oidc = wanted.oidc
    group = eks.system_node_group.resources[0].autoscaling_groups[0].name
    made = AwsLoadBalancer(
        f"{spec.name}-mlflow",
        {
            "vpc_id": network.vpc_id,
            "subnet_ids": network.balancer_subnet_ids,
            "allowed_cidrs": wanted.allowed_cidrs,
            "node_security_group_id": eks.security_group_id,
            "node_group": group,
            "host": wanted.host,
            "certificate_arn": wanted.certificate_arn,
            "oidc": {
                "issuer": oidc.issuer,
                "authorization_endpoint": oidc.authorization_endpoint,
                "token_endpoint": oidc.token_endpoint,
                "user_info_endpoint": oidc.user_info_endpoint,
                "client_id": oidc.client_id,
                "client_secret_arn": oidc.client_secret_arn,
            },
            "log_bucket": tiers.log_bucket,
            "deletion_protection": spec.data.protect,
        },
        opts,
    )
    return WayIn(url=made.url, target=made.dns_name)
