"""Logs of a cluster's control plane, with the stack's retention."""

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.cluster.cluster_args import GcpClusterArgs

# Longest prefix of a log bucket's name.
_LONGEST = 100


def keep_control_plane_logs(component: Component, name: str, args: GcpClusterArgs) -> gcp.logging.ProjectSink:
    """A log bucket for the API server, the scheduler and the controllers of one cluster.

    The project's `_Default` bucket has them as well, for 30 days. Audit entries about changes of objects of
    the cluster are in `_Required`, for 400 days, independent of the stack (Cloud Audit Logs documentation,
    Admin Activity). The bucket's name ends as the network's does: a deleted bucket keeps its name for seven
    days. It has Google's key, as that of the network's logs.
    """
    project, region = args["project"], args["region"]
    bucket = gcp.logging.ProjectBucketConfig(
        f"{name}-logs",
        project=project,
        location=region,
        bucket_id=pulumi.Output.from_input(args["network"]).apply(
            lambda network: f"control-plane-{network.rpartition('/')[2]}"[:_LONGEST]
        ),
        retention_days=args["log_retention_days"],
        description="Logs of the control plane",
        opts=component.child(),
    )
    return gcp.logging.ProjectSink(
        f"{name}-logs",
        project=project,
        destination=pulumi.Output.concat("logging.googleapis.com/", bucket.id),
        filter=log_filter(args["name"], region),
        unique_writer_identity=True,  # within a project it needs no permission on the bucket
        opts=component.child(),
    )


def log_filter(cluster: str, location: str) -> str:
    """Entries of the control plane of one cluster (GKE documentation, "View GKE logs")."""
    return (
        f'resource.type="k8s_control_plane_component" AND resource.labels.cluster_name="{cluster}"'
        f' AND resource.labels.location="{location}"'
    )
