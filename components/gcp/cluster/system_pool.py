"""The nodes that run the cluster's own services: small, on demand, over the stack's zones."""

import math
from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp

from components.base import Component
from components.gcp.cluster.cluster_args import GcpClusterArgs
from infra.catalog.gcp import facts
from infra.catalog.gcp.clusters import system_pods
from infra.catalog.gcp.pools import SYSTEM_DISK_GIB
from infra.catalog.pools import RESERVED_LABELS
from infra.naming import sanitize

# Nodes of the stack's own services have them.
SYSTEM_LABELS = {f"{RESERVED_LABELS}pool": "system"}
# GKE allows 40 characters for the name of a node pool, and Pulumi eight of these.
POOL_NAME_LENGTH = 32


def system_pool(
    component: Component,
    name: str,
    args: GcpClusterArgs,
    *,
    cluster: gcp.container.Cluster,
    account: pulumi.Input[str],
    key: pulumi.Input[str],
) -> gcp.container.NodePool:
    """A pool whose size is the autoscaler's, between bounds over all zones; upgrades add a node first."""
    wanted = args["system_pool"]
    return gcp.container.NodePool(
        sanitize(f"{name}-system", max_length=POOL_NAME_LENGTH),
        cluster=cluster.name,
        location=args["region"],
        node_locations=list(args["zones"]),
        # Per zone; the autoscaler changes it from then on, and another number would replace the pool.
        initial_node_count=math.ceil(wanted["min_nodes"] / len(args["zones"])),
        autoscaling=gcp.container.NodePoolAutoscalingArgs(
            total_min_node_count=wanted["min_nodes"],
            total_max_node_count=wanted["max_nodes"],
            location_policy="BALANCED",  # the loss of a zone leaves some
        ),
        management=gcp.container.NodePoolManagementArgs(auto_repair=True, auto_upgrade=True),
        upgrade_settings=gcp.container.NodePoolUpgradeSettingsArgs(
            strategy="SURGE", max_surge=1, max_unavailable=0
        ),
        max_pods_per_node=system_pods(args["pods_per_node"]),
        network_config=gcp.container.NodePoolNetworkConfigArgs(
            enable_private_nodes=True, pod_range=args["pod_range_name"]
        ),
        node_config=_node(wanted["machine"], account, key, args.get("labels")),
        opts=component.child(pulumi.ResourceOptions(ignore_changes=["initialNodeCount"])),
    )


def _node(
    machine: str, account: pulumi.Input[str], key: pulumi.Input[str], labels: Mapping[str, str] | None
) -> gcp.container.NodePoolNodeConfigArgs:
    return gcp.container.NodePoolNodeConfigArgs(
        machine_type=machine,
        image_type="COS_CONTAINERD",
        disk_type=facts.boot_disk(machine),
        disk_size_gb=SYSTEM_DISK_GIB,
        boot_disk_kms_key=key,
        service_account=account,
        # Permissions are IAM's alone (GKE documentation, "Access scopes").
        oauth_scopes=["https://www.googleapis.com/auth/cloud-platform"],
        labels=SYSTEM_LABELS,
        resource_labels=labels,
        metadata={"disable-legacy-endpoints": "true"},
        gvnic=gcp.container.NodePoolNodeConfigGvnicArgs(enabled=True),
        gcfs_config=gcp.container.NodePoolNodeConfigGcfsConfigArgs(enabled=True),
        kubelet_config=gcp.container.NodePoolNodeConfigKubeletConfigArgs(
            insecure_kubelet_readonly_port_enabled="FALSE"
        ),
        shielded_instance_config=gcp.container.NodePoolNodeConfigShieldedInstanceConfigArgs(
            enable_secure_boot=True, enable_integrity_monitoring=True
        ),
        workload_metadata_config=gcp.container.NodePoolNodeConfigWorkloadMetadataConfigArgs(
            mode="GKE_METADATA"
        ),
    )
