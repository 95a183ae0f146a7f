"""Shared configuration of the nodes of all pools: identity, hardening, upgrades."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import pulumi_gcp as gcp

from components.gcp.pools.args import PoolArgs
from infra import naming
from infra.catalog.gcp import facts

# GKE allows 40 characters for the name of a pool, of which the provider adds a dash and seven.
_NAME = 32
_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]  # IAM alone limits: scopes are a legacy
# GKE drains at most 20 nodes of a pool at a time (GKE documentation, "Surge upgrades").
_AT_ONCE, _AT_ONCE_SHARE = 20, 0.33
# GKE counts nodes itself. A count in the program would remove nodes with jobs; a change of the first count
# replaces the pool (google_container_node_pool, initial_node_count), and resizing by hand changes it.
IGNORED: Final = ["initialNodeCount", "nodeCount"]


def pool_name(name: str) -> str:
    """The logical name of a node pool; it ends in a digest when those of stack and pool are too long."""
    return naming.sanitize(name, max_length=_NAME)


def common(
    args: PoolArgs,
    labels: Mapping[str, str],
    taints: Sequence[gcp.container.NodePoolNodeConfigTaintArgs],
) -> gcp.container.NodePoolNodeConfigArgs:
    """Nodes whose pods have identities of their own, on an encrypted disk, with streamed images."""
    return gcp.container.NodePoolNodeConfigArgs(
        machine_type=args["machine"],
        image_type="COS_CONTAINERD",
        service_account=args["node_service_account"],
        oauth_scopes=_SCOPES,
        disk_size_gb=args["disk_gib"],
        disk_type=facts.boot_disk(args["machine"]),
        boot_disk_kms_key=args.get("boot_disk_key"),
        labels=dict(labels),
        taints=list(taints),
        resource_labels=dict(args["resource_labels"]),
        spot=True if args["purchase"] == "spot" else None,
        gvnic=gcp.container.NodePoolNodeConfigGvnicArgs(enabled=True),
        gcfs_config=gcp.container.NodePoolNodeConfigGcfsConfigArgs(enabled=True),
        shielded_instance_config=gcp.container.NodePoolNodeConfigShieldedInstanceConfigArgs(
            enable_secure_boot=True, enable_integrity_monitoring=True
        ),
        workload_metadata_config=gcp.container.NodePoolNodeConfigWorkloadMetadataConfigArgs(
            mode="GKE_METADATA"
        ),
        # Without authentication, clients that reach the node read all of its pods (CIS GKE 4.2.4).
        kubelet_config=gcp.container.NodePoolNodeConfigKubeletConfigArgs(
            insecure_kubelet_readonly_port_enabled="FALSE"
        ),
    )


def upgrades(max_nodes: int, *, spare: bool) -> gcp.container.NodePoolUpgradeSettingsArgs:
    """A third of the pool at a time; with `spare` capacity new nodes start before old ones end.

    One drained node ends a job that spans the pool, so going node by node only makes the interruption longer.
    """
    at_once = max(1, min(_AT_ONCE, math.floor(max_nodes * _AT_ONCE_SHARE)))
    return gcp.container.NodePoolUpgradeSettingsArgs(
        strategy="SURGE", max_surge=at_once if spare else 0, max_unavailable=0 if spare else at_once
    )


def draining() -> list[gcp.container.NodePoolNodeDrainConfigArgs]:
    """Pods that must not be disturbed also delay the deletion of their pool, for an hour at most."""
    return [gcp.container.NodePoolNodeDrainConfigArgs(respect_pdb_during_node_pool_deletion=True)]


def autoscaling(least: int, most: int, *, anywhere: bool) -> gcp.container.NodePoolAutoscalingArgs:
    """Bounds of all zones together; `anywhere`: nodes start in any zone with capacity, not evenly spread."""
    return gcp.container.NodePoolAutoscalingArgs(
        total_min_node_count=least,
        total_max_node_count=most,
        location_policy="ANY" if anywhere else "BALANCED",
    )
