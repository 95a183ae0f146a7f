"""The Slurm controller of AWS PCS with accounting, and delivery of its logs."""

from collections.abc import Mapping
from typing import Literal, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws.account import current_account
from components.aws.encryption import encryption_key
from components.aws.logs import log_group, logs_may_use
from components.aws.slurm.pcs_resource import pcs_resource, read
from components.base import Component, Options


class AwsSlurmClusterArgs(TypedDict):
    """Version, size, network and settings of a cluster."""

    region: str
    """Region of the provider in use."""
    name: str
    """Name of the cluster, 3 to 40 letters, digits and dashes."""
    version: str
    """Version of Slurm, such as `25.11`."""
    size: Literal["SMALL", "MEDIUM", "LARGE"]
    """Size of the controller; a change replaces the cluster."""
    subnet_id: pulumi.Input[str]
    """Private subnet of the controller's network interface."""
    security_group_id: pulumi.Input[str]
    """Security group of controller and nodes, whose members reach each other."""
    settings: Mapping[str, str]
    """Settings of slurm.conf."""
    idle_seconds: int
    """Seconds until an idle node is terminated."""
    log_retention_days: int
    """Days for which logs of the scheduler are kept."""
    tags: Mapping[str, str]
    """All tags of the cluster."""


class AwsSlurmCluster(Component):
    """A managed controller: the service keeps its credentials in Secrets Manager and runs the data base.

    The service creates one cluster of an account and Region at a time (User Guide,
    working-with_clusters_create): a stack has one, and stacks of one account are deployed one after another.
    """

    cluster_id: pulumi.Output[str]
    """Id of the cluster."""
    arn: pulumi.Output[str]
    """ARN of the cluster."""

    def __init__(self, name: str, args: AwsSlurmClusterArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        cluster = pcs_resource(
            self,
            name,
            "Cluster",
            {
                "Name": args["name"],
                "Size": args["size"],
                "Scheduler": {"Type": "SLURM", "Version": args["version"]},
                "Networking": {
                    "SubnetIds": [args["subnet_id"]],
                    "SecurityGroupIds": [args["security_group_id"]],
                },
                "SlurmConfiguration": {
                    # Budgets, quotas and sacct need it. It cannot be switched off again.
                    "Accounting": {"Mode": "STANDARD"},
                    "ScaleDownIdleTimeInSeconds": args["idle_seconds"],
                },
            },
            settings=args["settings"],
            tags=args["tags"],
            # Another size or network needs another cluster. It would have the name of this one, so the
            # service refuses it before anything is deleted: a larger pool costs no jobs and no accounting.
        )
        self.cluster_id, self.arn = read(cluster, "Id"), read(cluster, "Arn")
        self._logs(name, args)
        self.register_declared()

    def _logs(self, name: str, args: AwsSlurmClusterArgs) -> None:
        """Logs of slurmctld and slurmdbd in CloudWatch (User Guide, monitoring_scheduler-logs)."""
        group_name = f"/aws/vendedlogs/pcs/{args['name']}"
        key = encryption_key(
            self,
            f"{name}-logs",
            account=current_account(self),
            purpose=f"Logs of the scheduler of {args['name']}",
            statements=logs_may_use(args["region"], group_name),
        )
        group = log_group(
            self,
            f"{name}-log",
            log_group_name=group_name,
            retention_days=args["log_retention_days"],
            key_arn=key.arn,
        )
        source = aws.cloudwatch.LogDeliverySource(
            f"{name}-log-source",
            name=f"{args['name']}-scheduler",
            log_type="PCS_SCHEDULER_LOGS",
            resource_arn=self.arn,
            opts=self.child(),
        )
        destination = aws.cloudwatch.LogDeliveryDestination(
            f"{name}-log-destination",
            name=f"{args['name']}-scheduler",
            delivery_destination_configuration={"destination_resource_arn": group.arn},
            opts=self.child(),
        )
        aws.cloudwatch.LogDelivery(
            f"{name}-log-delivery",
            delivery_source_name=source.name,
            delivery_destination_arn=destination.arn,
            opts=self.child(),
        )
