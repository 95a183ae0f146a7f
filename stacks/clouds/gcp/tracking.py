"""The tracking server of a stack on Google Cloud."""

import pulumi

from components.gcp.cluster.gke import GcpCluster
from components.gcp.network.vpc import GcpNetwork
from components.gcp.storage.tiers import GcpStorage
from components.gcp.tracking.server import SECRET_STORE, GcpTracking, grants
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.model import demanded
from stacks.parts import Tracking


def tracking_on_gcp(
    spec: StackSpec,
    on: GcpSpec,
    *,
    number: pulumi.Output[str],
    gke: GcpCluster,
    network: GcpNetwork,
    tiers: GcpStorage,
    opts: pulumi.ResourceOptions,
) -> Tracking:
    """MLflow, with Cloud SQL and Secret Manager behind it."""
    wanted, database = demanded(spec.tracking), demanded(on.database)
    server = GcpTracking(
        f"{spec.name}-tracking",
        {
            "project": on.project,
            "project_number": number,
            "region": spec.region,
            "workload_pool": gke.workload_pool,
            "network_id": network.services_network,
            "artifact_bucket": tiers.artifact_bucket,
            "key_id": tiers.key_id,
            "image": wanted.image,
            "replicas": wanted.replicas,
            "workers": wanted.workers,
            "tier": database.tier,
            "availability": database.availability,
            "disk_gib": database.disk_gib,
            "deletion_protection": spec.data.protect,
            "last_backup": spec.data.on_destroy == "keep",
        },
        opts,
    )
    return Tracking(
        url=server.url,
        namespace=server.namespace,
        admin_secret=server.admin_secret,
        secret_store=SECRET_STORE,
        grants=grants(on.project),
        image=wanted.image,
        way_in=None,
    )
