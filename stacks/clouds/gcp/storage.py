"""Buckets and file systems of a stack on Google Cloud, and their alerts."""

from dataclasses import dataclass

import pulumi

from components.gcp.alerts.storage import GcpStorageAlerts, GcpStorageAlertsArgs
from components.gcp.network.vpc import GcpNetwork
from components.gcp.storage.tiers import GcpStorage, GcpStorageArgs
from components.gcp.storage.volumes import filestore_source, lustre_source
from components.kubernetes.volumes import VolumeArgs
from infra.alarms import storage as storage_alarms
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout
from stacks.parts import SharedFolder, Store

# Managed Lustre exports this folder to the checkpoint bucket.
_CHECKPOINTS = "checkpoints"
HOME_VOLUME_GIB = 100
"""Size of volumes of homes, which Kubernetes requires and cannot change; the size of the share counts."""

BUCKET_VOLUME_GIB = 1024
"""Size of volumes of buckets, which Kubernetes requires; a bucket has none."""


@dataclass(frozen=True)
class GcpStore(Store):
    """A store on Google Cloud, with its buckets and their key."""

    tiers: GcpStorage


def store_on_gcp(
    spec: StackSpec,
    layout: ClusterLayout,
    on: GcpSpec,
    *,
    number: pulumi.Output[str],
    network: GcpNetwork,
    clients: str,
    opts: pulumi.ResourceOptions,
) -> GcpStore:
    """Buckets, and optionally Managed Lustre and Filestore, which the range `clients` may mount."""
    wanted, shared = spec.data, spec.data.shared_fs
    args = storage_args(spec, on, number, network)
    if wanted.homes:
        args["homes"] = {
            "capacity_gib": on.homes_size_gib,
            "at_first": on.homes_gib is None,
            "client_cidrs": [clients],
            "backups": wanted.on_destroy == "keep",
        }
    if shared:
        args["lustre"] = {
            "zone": shared.zone,
            "capacity_gib": shared.capacity_gib,
            "throughput_mb_s_per_tib": shared.throughput_mb_s_per_tib,
        }
    if on.dataset_cache:
        args["cache_zones"] = sorted({zone for pool in layout.pools for zone in pool.zones})
    if on.dataset_claims:
        args["dataset_folders"] = [team.data_folder for team in spec.teams]
    if on.rapid_checkpoints is not None:
        args["rapid_zone"] = on.rapid_checkpoints
    tiers = GcpStorage(f"{spec.name}-storage", args, opts)
    checkpoints, homes = None, None
    if shared and tiers.lustre:
        checkpoints = SharedFolder(
            volume={"source": lustre_source(tiers.lustre), "capacity_gib": shared.capacity_gib},
            folder=_CHECKPOINTS,
        )
    if tiers.homes:
        homes = VolumeArgs(source=filestore_source(tiers.homes), capacity_gib=HOME_VOLUME_GIB)
    return GcpStore(
        checkpoint_uri=uri(tiers.checkpoint_bucket),
        dataset_uri=uri(tiers.dataset_bucket),
        artifact_uri=uri(tiers.artifact_bucket),
        checkpoints=checkpoints,
        ready=tiers,
        homes=homes,
        tiers=tiers,
    )


def alerts_on_gcp(spec: StackSpec, tiers: GcpStorage, opts: pulumi.ResourceOptions) -> GcpStorageAlerts:
    """Alert policies for administrators, also without monitoring in the cluster."""
    args: GcpStorageAlertsArgs = {
        "emails": spec.budget.alert_emails,
        "checkpoint_bucket": tiers.checkpoint_bucket,
    }
    if limits := storage_alarms.bucket_limits_gb(spec):
        args["checkpoint_limit_gb"] = sum(limits.values())
    if tiers.lustre:
        args["lustre"] = {"instance": tiers.lustre.instance, "least_free": storage_alarms.LEAST_FREE}
    if tiers.homes:
        args["homes"] = {
            "instance": tiers.homes.instance,
            "location": tiers.homes.location,
            "limit_gib": tiers.homes.capacity_gib.apply(lambda gib: (1 - storage_alarms.LEAST_FREE) * gib),
        }
    if address := storage_alarms.runbooks_url(spec):
        args["runbooks_url"] = address
    return GcpStorageAlerts(f"{spec.name}-storage-alerts", args, opts)


def storage_args(
    spec: StackSpec, on: GcpSpec, number: pulumi.Output[str], network: GcpNetwork
) -> GcpStorageArgs:
    """Settings of the buckets, without file systems; `number` is the project's."""
    wanted = spec.data
    args: GcpStorageArgs = {
        "project": on.project,
        "project_number": number,
        "region": spec.region,
        "network_name": network.network_name,
        "services_network": network.services_network,
        "checkpoint_retention_days": wanted.checkpoints.expire_days,
        "noncurrent_days": wanted.noncurrent_days,
        "log_retention_days": wanted.log_retention_days,
        "force_destroy": not wanted.protect and wanted.on_destroy == "discard",
        "deletion_protection": wanted.protect,
    }
    if wanted.checkpoints.cool_after_days is not None:
        args["checkpoint_cool_days"] = wanted.checkpoints.cool_after_days
    if wanted.checkpoints.cold_after_days is not None:
        args["checkpoint_cold_days"] = wanted.checkpoints.cold_after_days
    return args


def uri(bucket: pulumi.Output[str], folder: str = "") -> pulumi.Output[str]:
    """The URI of a bucket, or of a folder such as `/results`."""
    return pulumi.Output.concat("gs://", bucket, folder)
