"""Aurora Serverless v2 PostgreSQL for the tracking server: small, encrypted, paused when idle."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import logs
from components.aws.account import current_account
from components.aws.encryption import encryption_key
from components.aws.network.connections import connect, tcp
from components.base import Component, Options
from components.ordering import after

# A major version alone: RDS picks its preferred minor and keeps it current in the maintenance window.
POSTGRES_MAJOR = "17"
POSTGRES_PORT = 5432
USER = "mlflow"

# Time without a connection after which a database with a minimum of 0 ACU pauses; 300 to 86400.
AUTO_PAUSE_S = 1800

# Below this capacity Performance Insights itself takes a noticeable part of the memory.
# Source: Aurora user guide, "Performance and scaling for Aurora Serverless v2".
INSIGHTS_MIN_ACU = 2.0


class AwsDatabaseArgs(TypedDict):
    """Size, place and safety of the database."""

    region: str
    """The provider's region."""
    vpc_id: pulumi.Input[str]
    """The VPC of the subnets."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """Private subnets in at least two zones, for the database."""
    client_security_group_ids: Sequence[pulumi.Input[str]]
    """Security groups of the nodes whose pods may connect."""
    kms_key_arn: pulumi.Input[str]
    """Key for storage and secrets, the master password among them."""
    min_acu: float
    """Smallest capacity in Aurora capacity units (about 2 GiB each); 0 lets it pause after half an hour."""
    max_acu: float
    """Largest capacity in Aurora capacity units."""
    log_retention_days: int
    """Days for which the database's log is kept."""
    backup_retention_days: NotRequired[int]
    """Days of continuous backup of the database, 1 to 35. Default: 7."""
    deletion_protection: NotRequired[bool]
    """Refuse to delete the database. Default: yes."""
    last_snapshot: NotRequired[bool]
    """Take a snapshot of the database when it is deleted after all. Default: yes."""


class AwsDatabase(Component):
    """One writer, no reader: Aurora keeps six copies of the data and restarts a failed writer on its own.

    The master password is created, kept and rotated by RDS in Secrets Manager; it is never in this program.
    """

    endpoint: pulumi.Output[str]
    """Host name of the writer."""
    secret_arn: pulumi.Output[str]
    """Secret with the master user's name and password."""
    identifier: pulumi.Output[str]
    """Name of the cluster, of which snapshots are taken."""
    arn: pulumi.Output[str]
    """ARN of the cluster."""

    def __init__(self, name: str, args: AwsDatabaseArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        group, rules = self._security_group(name, args)
        subnets = aws.rds.SubnetGroup(
            f"{name}-subnets",
            description=f"Where {name} lives",
            subnet_ids=args["subnet_ids"],
            opts=self.child(),
        )
        parameters = aws.rds.ClusterParameterGroup(
            f"{name}-parameters",
            family=f"aurora-postgresql{POSTGRES_MAJOR}",
            description=f"{name}: connections are encrypted or refused",
            parameters=[{"name": "rds.force_ssl", "value": "1"}],
            opts=self.child(),
        )
        cluster = self._cluster(name, args, group, subnets, parameters)
        instance = self._writer(name, args, cluster)
        # An endpoint without an instance, or without a network path, is unusable.
        self.endpoint = after(cluster.endpoint, [instance, *rules])
        self.identifier, self.arn = cluster.cluster_identifier, cluster.arn
        self.secret_arn = cluster.master_user_secrets.apply(lambda known: str(known[0].secret_arn))
        self.register_declared()

    def _security_group(
        self, name: str, args: AwsDatabaseArgs
    ) -> tuple[aws.ec2.SecurityGroup, list[pulumi.Resource]]:
        group = aws.ec2.SecurityGroup(
            f"{name}-group",
            description="PostgreSQL from the nodes that run the tracking server",
            vpc_id=args["vpc_id"],
            opts=self.child(),
        )
        rules: list[pulumi.Resource] = []
        for index, client in enumerate(args["client_security_group_ids"]):
            rules += connect(
                self,
                f"{name}-client{index}",
                source=client,
                target=group.id,
                traffic=tcp((POSTGRES_PORT, POSTGRES_PORT)),
            )
        return group, rules

    def _cluster(
        self,
        name: str,
        args: AwsDatabaseArgs,
        group: aws.ec2.SecurityGroup,
        subnets: aws.rds.SubnetGroup,
        parameters: aws.rds.ClusterParameterGroup,
    ) -> aws.rds.Cluster:
        snapshot = args.get("last_snapshot", True)
        log = self._log_group(name, args)
        scaling: aws.rds.ClusterServerlessv2ScalingConfigurationArgsDict = {
            "min_capacity": args["min_acu"],
            "max_capacity": args["max_acu"],
        }
        if args["min_acu"] == 0:
            scaling["seconds_until_auto_pause"] = AUTO_PAUSE_S
        return aws.rds.Cluster(
            name,
            # A name of our own: the log group, which must exist first, has it in its name.
            cluster_identifier=name,
            engine=aws.rds.EngineType.AURORA_POSTGRESQL,
            engine_mode="provisioned",  # the mode of serverless v2
            engine_version=POSTGRES_MAJOR,
            database_name="mlflow",
            master_username=USER,
            manage_master_user_password=True,
            master_user_secret_kms_key_id=args["kms_key_arn"],
            iam_database_authentication_enabled=True,
            serverlessv2_scaling_configuration=scaling,
            storage_encrypted=True,
            kms_key_id=args["kms_key_arn"],
            db_subnet_group_name=subnets.name,
            db_cluster_parameter_group_name=parameters.name,
            vpc_security_group_ids=[group.id],
            backup_retention_period=args.get("backup_retention_days", 7),
            copy_tags_to_snapshot=True,
            deletion_protection=args.get("deletion_protection", True),
            skip_final_snapshot=not snapshot,
            # Named after the subnets, whose name ends differently in every life of a stack: a snapshot of
            # that name would keep the database of the next life from being deleted.
            final_snapshot_identifier=(
                pulumi.Output.concat(name, "-last-", subnets.name.apply(_ending)) if snapshot else None
            ),
            enabled_cloudwatch_logs_exports=["postgresql"],
            database_insights_mode="standard",
            opts=self.child(pulumi.ResourceOptions(depends_on=[log])),
        )

    def _writer(self, name: str, args: AwsDatabaseArgs, cluster: aws.rds.Cluster) -> aws.rds.ClusterInstance:
        insights = args["min_acu"] >= INSIGHTS_MIN_ACU
        return aws.rds.ClusterInstance(
            f"{name}-writer",
            cluster_identifier=cluster.id,
            engine=aws.rds.EngineType.AURORA_POSTGRESQL,
            instance_class="db.serverless",
            publicly_accessible=False,
            auto_minor_version_upgrade=True,
            performance_insights_enabled=insights,
            performance_insights_kms_key_id=args["kms_key_arn"] if insights else None,
            opts=self.child(),
        )

    def _log_group(self, name: str, args: AwsDatabaseArgs) -> aws.cloudwatch.LogGroup:
        group_name = f"/aws/rds/cluster/{name}/postgresql"
        key = encryption_key(
            self,
            f"{name}-log-key",
            account=current_account(self),
            purpose=f"PostgreSQL log of {name}",
            statements=logs.logs_may_use(args["region"], group_name),
        )
        return logs.log_group(
            self,
            f"{name}-log",
            log_group_name=group_name,
            retention_days=args["log_retention_days"],
            key_arn=key.arn,
        )


def _ending(name: str) -> str:
    return name.rpartition("-")[2]
