"""Logs of a network, with the stack's retention."""

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from components.base import Component


def keep_logs(
    component: Component,
    name: str,
    *,
    project: str,
    region: str,
    network_name: pulumi.Output[str],
    subnetwork_names: Sequence[pulumi.Input[str]],
    gateway_name: pulumi.Input[str],
    retention_days: int,
) -> gcp.logging.ProjectBucketConfig:
    """A log bucket with the flows, the refused connections and the errors of NAT of subnetworks.

    The project's `_Default` bucket has them as well, for 30 days; it belongs to the project and stays as it
    is. The bucket's name ends as the network's does: a deleted bucket keeps its name for seven days. It is
    encrypted with Google's key: it holds addresses and names, no content.
    """
    bucket = gcp.logging.ProjectBucketConfig(
        f"{name}-logs",
        project=project,
        location=region,
        bucket_id=network_name,
        retention_days=retention_days,
        description="Connections of the network: flows, refused ones, errors of NAT",
        opts=component.child(),
    )
    destination = pulumi.Output.concat("logging.googleapis.com/", bucket.id)
    gcp.logging.ProjectSink(
        f"{name}-logs",
        project=project,
        destination=destination,
        filter=log_filter(project, subnetwork_names, gateway_name),
        unique_writer_identity=True,  # within a project it needs no permission on the bucket
        opts=component.child(),
    )
    return bucket


def log_filter(
    project: str, subnetworks: Sequence[pulumi.Input[str]], gateway: pulumi.Input[str]
) -> pulumi.Output[str]:
    """Entries of subnetworks and one NAT gateway (VPC Flow Logs, Firewall Rules Logging, Cloud NAT)."""
    logs = " OR ".join(
        f'"projects/{project}/logs/compute.googleapis.com%2F{name}"' for name in ("vpc_flows", "firewall")
    )
    return pulumi.Output.concat(
        f'(resource.type="gce_subnetwork" AND logName=({logs}) AND resource.labels.subnetwork_name=("',
        pulumi.Output.all(*subnetworks).apply('" OR "'.join),
        '")) OR (resource.type="nat_gateway" AND resource.labels.gateway_name="',
        gateway,
        '")',
    )
