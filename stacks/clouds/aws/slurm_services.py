"""Services beside a Slurm system on AWS: MLflow, alarms and a dashboard."""

from typing import Final

import pulumi

from components.aws.slurm.monitoring import AwsSlurmMonitoring
from components.aws.slurm.role import AwsSlurmRole
from components.aws.slurm.tracking import AwsSlurmTracking
from components.aws.slurm.user_data import FOLDER
from components.aws.storage.tiers import AwsStorage
from components.aws.validation.alert_topic import AwsAlertTopic
from infra.slurm import SlurmSystem, monitoring, tracking
from infra.stackspec import StackSpec
from stacks.clouds.aws.storage import alarms_on_aws

CODE: Final = "slurm/code"
"""Folder of the bucket of artifacts that nodes read."""


def tracked(
    spec: StackSpec, role: AwsSlurmRole, storage: AwsStorage, opts: pulumi.ResourceOptions
) -> AwsSlurmTracking:
    """MLflow, and the right of nodes to use it."""
    return AwsSlurmTracking(
        f"{spec.name}-tracking",
        {
            "region": spec.region,
            "artifact_bucket": storage.artifact_bucket,
            "artifact_bucket_arn": storage.artifact_bucket_arn,
            "kms_key_arn": storage.kms_key_arn,
            "code": CODE,
            "role_name": role.role_name,
            "folder": FOLDER,
            "teams": tracking.accounts_of(team.name for team in spec.teams),
        },
        opts,
    )


def monitored(
    spec: StackSpec,
    system: SlurmSystem,
    role: AwsSlurmRole,
    storage: AwsStorage,
    opts: pulumi.ResourceOptions,
) -> pulumi.Output[str]:
    """Alarms of Slurm and of storage; returns the name of the dashboard."""
    topic = AwsAlertTopic(
        f"{spec.name}-training-alerts",
        {"emails": spec.budget.alert_emails, "alarms_of": spec.region},
        opts,
    )
    alarms_on_aws(spec, storage, topic, opts)
    return AwsSlurmMonitoring(
        f"{spec.name}-slurm",
        {
            "region": spec.region,
            "stack": spec.name,
            "alarms": list(monitoring.alarms(system)),
            "topic_arn": topic.topic_arn,
            "role_name": role.role_name,
        },
        opts,
    ).dashboard_name
