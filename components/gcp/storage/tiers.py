"""The storage tiers of a stack: a fast file system, object stores for three kinds of data, homes."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp.agents import FILESTORE, agent
from components.gcp.encryption import encryption_key
from components.gcp.storage.access_log import GcpAccessLog
from components.gcp.storage.bucket import GcpBucket, GcpBucketArgs
from components.gcp.storage.copies import GcpLustreCopies
from components.gcp.storage.homes import GcpHomes, GcpHomesArgs, HomesArgs
from components.gcp.storage.lustre import GcpLustre

SHARED = "shared/"
"""Readable by every team, in the bucket of the datasets."""
ALL_TEAMS = ""
"""Key of the bucket that pods of every team mount; the others have a team's folder."""
CACHE_TTL = "604800s"
"""Time that a part of an object stays in a cache after its last use: seven days, the maximum. Training
reads the same data every epoch."""


class LustreArgs(TypedDict):
    """The fast file system."""

    zone: str
    """The zone, best that of the nodes which train."""
    capacity_gib: int
    """Storage in GiB; the steps depend on the throughput (see the catalog)."""
    throughput_mb_s_per_tib: int
    """125, 250, 500 or 1000 MB/s per TiB; another value is another file system."""


class GcpStorageArgs(TypedDict):
    """The tiers, their clients, and the retention of data."""

    project: str
    """Id of the project."""
    project_number: pulumi.Input[str]
    """Number of that project."""
    region: str
    """Region of buckets and key."""
    network_name: pulumi.Input[str]
    """Name of the VPC network of the clients."""
    services_network: pulumi.Input[str]
    """Id of that network, known once it has private service access."""
    checkpoint_retention_days: int
    """Days for which a checkpoint is kept in its bucket."""
    checkpoint_cool_days: NotRequired[int]
    """Days after which a checkpoint is moved to the class Nearline. Default: never."""
    checkpoint_cold_days: NotRequired[int]
    """Days after which it is moved to the class Coldline. Default: never."""
    noncurrent_days: int
    """Days an overwritten or deleted object can still be restored, 7 to 90, in every bucket."""
    log_retention_days: int
    """Days for which the access log of objects is kept."""
    lustre: NotRequired[LustreArgs]
    """Default: no fast file system."""
    homes: NotRequired[HomesArgs]
    """Default: no home folders."""
    cache_zones: NotRequired[Sequence[str]]
    """Zones with a cache of the datasets (Anywhere Cache), billed by what is in it. Default: none."""
    dataset_folders: NotRequired[Sequence[str]]
    """Folders of teams that have a bucket of their own for datasets, beside one for all teams: pods mount
    whole buckets. Default: no such buckets."""
    rapid_zone: NotRequired[str]
    """Zone of a second bucket for checkpoints, the fastest and lost with its zone. Default: none."""
    force_destroy: NotRequired[bool]
    """Delete buckets together with the objects in them. Default: no."""
    deletion_protection: NotRequired[bool]
    """Refuse to delete Lustre and homes. Default: yes."""


class BucketPurpose(TypedDict, total=False):
    """Settings of one bucket that differ from the others; see `GcpBucketArgs`."""

    expire_days: int
    cool_after_days: int
    cold_after_days: int
    autoclass: bool
    keep: bool
    object_retention: bool
    folders: bool
    zone: str


class GcpStorage(Component):
    """Three buckets under one key, and on demand Lustre with copies of two of them and Filestore for homes.

    Checkpoints are in folders and expire; datasets move between classes by their use; artifacts stay, and
    single ones can be locked by object retention or a hold. On demand pods mount datasets, from buckets of
    their own (ADR 69). Only Lustre has a key of Google's (see
    `GcpLustre`). The key stays when buckets do: without it, they are unreadable.
    """

    checkpoint_bucket: pulumi.Output[str]
    """Name of the bucket of checkpoints."""
    dataset_bucket: pulumi.Output[str]
    """Name of the bucket of datasets."""
    artifact_bucket: pulumi.Output[str]
    """Name of the bucket of artifacts."""
    key_id: pulumi.Output[str]
    """Key of Cloud KMS of all of them; dependents come after the services have access."""
    log_bucket: pulumi.Output[str]
    """Log bucket with the others' access log."""
    shared_folder: pulumi.Output[str]
    """Managed folder of the datasets that every team may read."""

    def __init__(self, name: str, args: GcpStorageArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        self.key_id = self._key(name, args)
        fast: BucketPurpose = {"expire_days": args["checkpoint_retention_days"], "folders": True}
        checkpoints: BucketPurpose = {**fast}
        if "checkpoint_cool_days" in args:
            checkpoints["cool_after_days"] = args["checkpoint_cool_days"]
        if "checkpoint_cold_days" in args:
            checkpoints["cold_after_days"] = args["checkpoint_cold_days"]
        buckets = {
            "checkpoints": self._bucket(f"{name}-checkpoints", args, checkpoints),
            "datasets": self._bucket(f"{name}-datasets", args, {"autoclass": True}),
            "artifacts": self._bucket(f"{name}-artifacts", args, {"object_retention": True}),
        }
        self.checkpoint_bucket = buckets["checkpoints"].bucket
        self.dataset_bucket = buckets["datasets"].bucket
        self.artifact_bucket = buckets["artifacts"].bucket
        # Plain attributes: None where they are not wanted.
        self.rapid_bucket: pulumi.Output[str] | None = None
        if "rapid_zone" in args:
            rapid: BucketPurpose = {**fast, "zone": args["rapid_zone"]}
            buckets["rapid"] = self._bucket(f"{name}-rapid-checkpoints", args, rapid)
            self.rapid_bucket = buckets["rapid"].bucket
        self.team_datasets = self._team_datasets(name, args)
        buckets |= self.team_datasets
        log = GcpAccessLog(
            f"{name}-access-log",
            {
                "project": args["project"],
                "region": args["region"],
                "buckets": [made.bucket for made in buckets.values()],
                "retention_days": args["log_retention_days"],
            },
            self.child(),
        )
        self.log_bucket = log.bucket
        self._caches(name, args)
        self.shared_folder = gcp.storage.ManagedFolder(
            f"{name}-datasets-shared",
            bucket=self.dataset_bucket,
            name=SHARED,
            # Its objects stay, without the roles on it.
            force_destroy=True,
            opts=self.child(),
        ).name
        self.lustre = self._lustre(f"{name}-lustre", args)
        self.homes = self._homes(f"{name}-homes", args)
        self.register_outputs(
            {
                "checkpoint_bucket": self.checkpoint_bucket,
                "dataset_bucket": self.dataset_bucket,
                "artifact_bucket": self.artifact_bucket,
                "rapid_bucket": self.rapid_bucket,
                "key_id": self.key_id,
                "log_bucket": self.log_bucket,
                "shared_folder": self.shared_folder,
                "lustre_instance": self.lustre.instance if self.lustre else None,
                "homes_instance": self.homes.instance if self.homes else None,
            }
        )

    def _key(self, name: str, args: GcpStorageArgs) -> pulumi.Output[str]:
        """The key, for the agents of the services that encrypt with it; requesting an agent creates it."""
        storage = gcp.storage.get_project_service_account_output(
            project=args["project"], opts=pulumi.InvokeOutputOptions(parent=self)
        )
        users: dict[str, pulumi.Input[str]] = {"storage": storage.member}
        if "homes" in args:
            users["filestore"] = agent(
                self,
                f"{name}-filestore-agent",
                FILESTORE,
                project=args["project"],
                number=args["project_number"],
            )
        return encryption_key(
            self,
            f"{name}-key",
            location=args["region"],
            purpose="storage",
            users=users,
            keep=not args.get("force_destroy", False),
        ).id

    def _bucket(self, name: str, args: GcpStorageArgs, purpose: BucketPurpose) -> GcpBucket:
        common: GcpBucketArgs = {
            "region": args["region"],
            "key_id": self.key_id,
            "noncurrent_days": args["noncurrent_days"],
            "force_destroy": args.get("force_destroy", False),
        }
        return GcpBucket(name, {**common, **purpose}, self.child())

    def _team_datasets(self, name: str, args: GcpStorageArgs) -> dict[str, GcpBucket]:
        """The bucket of all teams, named `ALL_TEAMS`, and one for each folder.

        They stay when a team leaves or nothing mounts them, as a team's folders do, unless objects are to be
        deleted with the stack.
        """
        if "dataset_folders" not in args:
            return {}
        own: BucketPurpose = {"autoclass": True, "keep": not args.get("force_destroy", False)}
        return {
            folder: self._bucket(_datasets(name, folder), args, own)
            for folder in (ALL_TEAMS, *args["dataset_folders"])
        }

    def _caches(self, name: str, args: GcpStorageArgs) -> None:
        cached = {f"{name}-datasets": self.dataset_bucket}
        cached |= {_datasets(name, folder): one.bucket for folder, one in self.team_datasets.items()}
        for zone in args.get("cache_zones", ()):
            for logical, bucket in cached.items():
                gcp.storage.AnywhereCache(
                    f"{logical}-{zone}", bucket=bucket, zone=zone, ttl=CACHE_TTL, opts=self.child()
                )

    def _lustre(self, name: str, args: GcpStorageArgs) -> GcpLustre | None:
        if "lustre" not in args:
            return None
        system = GcpLustre(
            name,
            {
                **args["lustre"],
                "network_id": args["services_network"],
                "protect": args.get("deletion_protection", True),
            },
            self.child(),
        )
        GcpLustreCopies(
            f"{name}-copies",
            {
                "project": args["project"],
                "project_number": args["project_number"],
                "region": args["region"],
                "instance": system.instance,
                "checkpoint_bucket": self.checkpoint_bucket,
                "dataset_bucket": self.dataset_bucket,
            },
            self.child(),
        )
        return system

    def _homes(self, name: str, args: GcpStorageArgs) -> GcpHomes | None:
        if "homes" not in args:
            return None
        # Requires private service access, too, though Filestore takes the network's name.
        network = pulumi.Output.all(args["network_name"], args["services_network"]).apply(
            lambda known: str(known[0])
        )
        wanted: GcpHomesArgs = {
            **args["homes"],
            "region": args["region"],
            "network_name": network,
            "key_id": self.key_id,
            "protect": args.get("deletion_protection", True),
        }
        return GcpHomes(name, wanted, self.child())


def _datasets(name: str, folder: str) -> str:
    """The logical name of a bucket that pods mount."""
    return f"{name}-datasets-{folder}" if folder else f"{name}-shared-datasets"
