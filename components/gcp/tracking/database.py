"""Cloud SQL for PostgreSQL for the tracking server: private, encrypted, without a password."""

from typing import NotRequired, TypedDict

import pulumi
import pulumi_gcp as gcp

from components.base import Component, Options
from components.gcp.tracking.agents import may_use_key
from components.ordering import after
from infra.catalog.gcp.database import database_problems
from infra.errors import UserError

# Cloud SQL keeps the minor version current in the maintenance window.
POSTGRES = "POSTGRES_17"
POSTGRES_PORT = 5432
DATABASE = "mlflow"

AVAILABILITY = {"zonal": "ZONAL", "regional": "REGIONAL"}

# Sunday at 3 in the morning, UTC; two weeks after the update reached the first instances.
MAINTENANCE: gcp.sql.DatabaseInstanceSettingsMaintenanceWindowArgsDict = {
    "day": 7,
    "hour": 3,
    "update_track": "stable",
}
BACKUP_AT = "01:00"  # UTC; before the maintenance

# Maximum of editions other than Enterprise Plus, in days. Source: Cloud SQL documentation, "Use
# point-in-time recovery (PITR)"; pulumi-gcp 10.2.0, transaction_log_retention_days.
LOG_DAYS_MOST = 7
# Retention of a backup that outlives its database, the maximum of Cloud SQL, in days.
LAST_BACKUP_DAYS = 365

# Logins with tokens, and a log of connections, waits and schema changes.
FLAGS = {
    "cloudsql.iam_authentication": "on",
    "log_connections": "on",
    "log_disconnections": "on",
    "log_lock_waits": "on",
    "log_statement": "ddl",
}


class GcpDatabaseArgs(TypedDict):
    """Size, place and safety of the database."""

    region: str
    """The region of the instance; the provider's."""
    network_id: pulumi.Input[str]
    """The network, known once private service access exists: the instance gets an address there."""
    key_id: pulumi.Input[str]
    """Key of the region, for disk and backups."""
    tier: str
    """Machine tier, `db-custom-<CPUs>-<MiB>`, or with `shared_core` one such as `db-f1-micro`."""
    shared_core: NotRequired[bool]
    """Whether a tier without a core of its own, and without a service level, will do. Default: no."""
    availability: str
    """`zonal`, or `regional` for a standby in another zone."""
    disk_gib: int
    """First size of the disk in GiB; it grows automatically and never shrinks."""
    backup_retention_days: int
    """Days of daily backups, 1 to 365; up to 7 of them with point-in-time recovery."""
    deletion_protection: NotRequired[bool]
    """Refuse to delete the database. Default: yes."""
    last_backup: NotRequired[bool]
    """Take a backup when it is deleted after all, and keep the others. Default: yes."""
    formerly_below: NotRequired[pulumi.Input[str]]
    """URN of the component with the former database of this name; its permission on the key is kept."""


class GcpDatabase(Component):
    """One instance with one database, in the network of the stack only.

    There is no password: `postgres`, the user that Cloud SQL creates, gets none and so cannot log in.
    Services log in as service accounts (`GcpDatabaseLogin`). Connections without TLS are rejected.

    The database itself is never deleted by name (`ABANDON`): it is deleted with its instance. Otherwise a
    destroy would empty the instance before the last backup is taken, or before the protection of the instance
    stops it. The name of an instance cannot be used again for a week; Pulumi's random suffix avoids that.

    Untested in a real project.
    """

    instance: pulumi.Output[str]
    """Name of the instance; dependents come after the database."""
    address: pulumi.Output[str]
    """Private IPv4 address."""
    authorities: pulumi.Output[str]
    """Certificates (PEM) of the authority that signs the instance's certificate, and no other's."""

    def __init__(self, name: str, args: GcpDatabaseArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        check(args)
        below = args.get("formerly_below")
        before = pulumi.create_urn(name, "trainstack:index:GcpDatabase", below) if below else None
        key_use = may_use_key(self, f"{name}-key", "sqladmin.googleapis.com", args["key_id"], before)
        instance = self._instance(name, args, key_use)
        database = gcp.sql.Database(
            f"{name}-database",
            name=DATABASE,
            instance=instance.name,
            deletion_policy="ABANDON",
            opts=self.child(),
        )
        self.instance = after(instance.name, [database])
        self.address = after(instance.private_ip_address, [database])
        # The provider marks them as secrets, and then whole pods that contain them. They are public.
        self.authorities = pulumi.Output.unsecret(instance.server_ca_certs).apply(
            lambda certificates: "\n".join(str(one.cert).strip() for one in certificates or ()) + "\n"
        )
        self.register_outputs({"instance": self.instance, "address": self.address})

    def _instance(
        self, name: str, args: GcpDatabaseArgs, key_use: pulumi.Resource
    ) -> gcp.sql.DatabaseInstance:
        protected, last = args.get("deletion_protection", True), args.get("last_backup", True)
        return gcp.sql.DatabaseInstance(
            name,
            region=args["region"],
            database_version=POSTGRES,
            encryption_key_name=args["key_id"],
            # Pulumi checks the first, every other tool the second.
            deletion_protection=protected,
            settings={
                **self._machine(args),
                "deletion_protection_enabled": protected,
                "ip_configuration": {
                    "ipv4_enabled": False,
                    "private_network": args["network_id"],
                    "ssl_mode": "ENCRYPTED_ONLY",
                },
                "backup_configuration": _backups(args["region"], args["backup_retention_days"]),
                "retain_backups_on_delete": last,
                "final_backup_config": {
                    "enabled": last,
                    **({"retention_days": LAST_BACKUP_DAYS} if last else {}),
                },
                "maintenance_window": MAINTENANCE,
                "insights_config": {
                    "query_insights_enabled": True,
                    # The pod is known: there is one kind.
                    "record_client_address": False,
                    "record_application_tags": False,
                },
                "database_flags": [{"name": key, "value": value} for key, value in FLAGS.items()],
            },
            final_backup_description=f"Last state of {name}" if last else None,
            # The disk grows; the first size would shrink it again, which replaces the database.
            opts=self.child(
                pulumi.ResourceOptions(depends_on=[key_use], ignore_changes=["settings.diskSize"])
            ),
        )

    def _machine(self, args: GcpDatabaseArgs) -> gcp.sql.DatabaseInstanceSettingsArgsDict:
        return {
            "tier": args["tier"],
            # From PostgreSQL 16 on, the default is Enterprise Plus: other tiers, another price.
            "edition": "ENTERPRISE",
            "availability_type": AVAILABILITY[args["availability"]],
            "disk_type": "PD_SSD",
            "disk_size": args["disk_gib"],
            "disk_autoresize": True,
        }


def _backups(region: str, days: int) -> gcp.sql.DatabaseInstanceSettingsBackupConfigurationArgsDict:
    """Daily backups in the region (the default is a multi-region around it), and the log between them."""
    return {
        "enabled": True,
        "start_time": BACKUP_AT,
        "location": region,
        "point_in_time_recovery_enabled": True,
        "transaction_log_retention_days": min(days, LOG_DAYS_MOST),
        "backup_retention_settings": {"retained_backups": days, "retention_unit": "COUNT"},
    }


def check(args: GcpDatabaseArgs) -> None:
    """Raise UserError with everything that Cloud SQL would reject."""
    problems = [
        *database_problems(
            tier=args["tier"],
            disk_gib=args["disk_gib"],
            backup_days=args["backup_retention_days"],
            shared=args.get("shared_core", False),
        )
    ]
    if problems:
        raise UserError(problems)
