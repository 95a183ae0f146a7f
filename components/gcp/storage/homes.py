"""Filestore for home folders: small files, many nodes; not for the checkpoints of large jobs."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.ordering import after
from infra.catalog.gcp.filestore import HOMES, size_problems
from infra.errors import Problem, UserError

SHARE = "homes"
"""Name of the share; an instance has one."""
BACKUP_DAYS = 35
"""Retention of a daily backup: as that of EFS's automatic ones."""
# A backup cannot be deleted earlier, not even with stolen credentials.
_ENFORCED = f"{7 * 86400}s"
_KIND = "file.googleapis.com/Instance"
# A backup plan has an id of at most 63 characters.
_ID = 63
_SIZE = ["fileShares.capacityGb"]


class HomesArgs(TypedDict):
    """Size, clients and copies of homes."""

    zone: NotRequired[str]
    """The one zone of the homes, for half the price; they are lost with it. Default: homes are in several
    zones."""
    capacity_gib: int
    """Size in GiB; the steps depend on the tier (see the catalog). It can grow and shrink."""
    at_first: NotRequired[bool]
    """Whether the size is that of a new instance alone: one that exists keeps its own. Default: no."""
    client_cidrs: Sequence[str]
    """Address ranges of the nodes, the only clients."""
    backups: NotRequired[bool]
    """Whether there are daily backups, which outlive the stack. Default: yes."""


class GcpHomesArgs(HomesArgs):
    """Location and key of the homes."""

    region: str
    """The region, such as `us-central1`."""
    network_name: pulumi.Input[str]
    """Name of the VPC network of its clients, which has private service access."""
    key_id: pulumi.Input[str]
    """Key of Cloud KMS in the region, which Filestore may use."""
    protect: NotRequired[bool]
    """Whether Filestore refuses to delete the instance. Default: yes."""


class GcpHomes(Component):
    """An encrypted Filestore instance with NFS 4.1, reachable from nodes only.

    NFS has no encryption in transit and trusts the client's user id, so a team's access is limited by
    what its pods can mount (`components.gcp.storage.volumes`). Root of a node is root here: folders are
    created by a Job that is root.

    Daily backups are kept 35 days in a vault, of which the first seven cannot be shortened by anyone. The
    vault stays when the stack is deleted.

    Raises UserError for a size that is not offered. *Untested in a real project.*
    """

    address: pulumi.Output[str]
    """IP address of the server."""
    instance: pulumi.Output[str]
    """Name of the instance."""
    location: str
    """Its zone, or the region."""
    capacity_gib: pulumi.Output[int]
    """Size of the instance in GiB."""

    def __init__(self, name: str, args: GcpHomesArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        tier = "ZONAL" if "zone" in args else HOMES
        if problems := list(
            size_problems(f"{name}.capacity_gib", args["capacity_gib"], f"{name}.zone", tier)
        ):
            raise UserError(problems)
        self.location = args.get("zone", args["region"])
        instance = gcp.filestore.Instance(
            name,
            location=self.location,
            tier=tier,
            protocol="NFS_V4_1",
            kms_key_name=args["key_id"],
            file_shares={
                "name": SHARE,
                "capacity_gb": args["capacity_gib"],
                "nfs_export_options": [
                    {
                        "ip_ranges": args["client_cidrs"],
                        "access_mode": "READ_WRITE",
                        "squash_mode": "NO_ROOT_SQUASH",
                    }
                ],
            },
            networks=[
                {
                    "network": args["network_name"],
                    "modes": ["MODE_IPV4"],
                    "connect_mode": "PRIVATE_SERVICE_ACCESS",
                }
            ],
            deletion_protection_enabled=args.get("protect", True),
            opts=self.child(self._keeping_size(name) if args.get("at_first") else None),
        )
        self.capacity_gib = instance.file_shares.capacity_gb
        kept = self._backups(name, args, instance) if args.get("backups", True) else []
        self.instance = after(instance.name, kept)
        self.address = after(instance.networks.apply(lambda found: _first(found[0].ip_addresses)), kept)
        self.register_declared()

    def _keeping_size(self, name: str) -> pulumi.ResourceOptions:
        """Options of an instance that keeps its size, also one that an administrator changed by hand.

        An update of clients sends the whole share, with the size of the state (terraform-provider-google
        google/services/filestore/resource_filestore_instance.go, `updateMask`), and Filestore would shrink.
        The preview reports it, too.
        """

        async def refuse(args: pulumi.ResourceHookArgs) -> None:
            known, share = dict(args.old_outputs or {}), dict(args.new_inputs or {})["fileShares"]
            if share == dict(args.old_inputs or {})["fileShares"]:
                return
            live = gcp.filestore.get_instance_output(
                location=known["location"], name=known["name"], opts=pulumi.InvokeOutputOptions(parent=self)
            )
            found = await live.file_shares.future()
            size = found[0].capacity_gb if found else share["capacityGb"]
            if size != share["capacityGb"]:
                rule = f"the instance has {size} GiB, and this update would send the size of the state"
                path, fix = f"{name}.capacity_gib", "Run `trainstack refresh` before."
                raise UserError([Problem(path, share["capacityGb"], rule, fix, code="homes-resized-outside")])

        hook = pulumi.ResourceHook(f"{name}-size", refuse, pulumi.ResourceHookOptions(on_dry_run=True))
        hooks = pulumi.ResourceHookBinding(before_update=[hook])
        return pulumi.ResourceOptions(ignore_changes=_SIZE, hooks=hooks)

    def _backups(
        self, name: str, args: GcpHomesArgs, instance: gcp.filestore.Instance
    ) -> list[pulumi.Resource]:
        """A backup a day. Ids end as the instance's name does: a vault that stays keeps its id."""
        own = instance.name.apply(lambda known: known[:_ID])
        vault = gcp.backupdisasterrecovery.BackupVault(
            f"{name}-vault",
            location=args["region"],
            backup_vault_id=own,
            description="Daily backups of homes",
            backup_minimum_enforced_retention_duration=_ENFORCED,
            access_restriction="WITHIN_PROJECT",
            opts=self.child(pulumi.ResourceOptions(retain_on_delete=True)),
        )
        plan = gcp.backupdisasterrecovery.BackupPlan(
            f"{name}-plan",
            location=args["region"],
            backup_plan_id=own,
            resource_type=_KIND,
            backup_vault=vault.id,
            backup_rules=[
                {
                    "rule_id": "daily",
                    "backup_retention_days": BACKUP_DAYS,
                    "standard_schedule": {
                        "recurrence_type": "DAILY",
                        "time_zone": "UTC",
                        "backup_window": {"start_hour_of_day": 1, "end_hour_of_day": 7},
                    },
                }
            ],
            opts=self.child(),
        )
        association = gcp.backupdisasterrecovery.BackupPlanAssociation(
            f"{name}-planned",
            location=args["region"],
            backup_plan_association_id=own,
            resource=instance.id,
            resource_type=_KIND,
            backup_plan=plan.name,
            opts=self.child(),
        )
        return [association]


def _first(addresses: Sequence[str] | None) -> str:
    assert addresses
    return addresses[0]
