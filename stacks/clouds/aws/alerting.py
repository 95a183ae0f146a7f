"""Alerting on AWS: SNS topics, to which Alertmanager publishes by its pod's role, and logs of pods."""

from collections.abc import Mapping
from typing import Any

import pulumi

from components.aws import iam
from components.aws.cluster.eks import AwsCluster
from components.aws.cluster.pod_logs import AwsPodLogs
from components.aws.pod_role import AwsPodRole
from components.aws.validation.alert_topic import AwsAlertTopic
from components.kubernetes.monitoring.names import ALERTMANAGER_ACCOUNT, NAMESPACE
from infra.naming import team_namespace
from infra.stackspec import StackSpec
from stacks.parts import Alerting

# SNS accepts at most 100 ASCII characters; names of teams may be longer, and have others.
_SUBJECT = "{{ .Status | toUpper }}: {{ .CommonLabels.alertname }}"


def alerting_on_aws(
    spec: StackSpec,
    eks: AwsCluster,
    platform: AwsAlertTopic,
    *,
    on_aws: pulumi.ResourceOptions,
    on_both: pulumi.ResourceOptions,
) -> Alerting:
    """A topic for each team with its own addresses, and one for administrators; logs that outlive nodes."""
    logs = AwsPodLogs(
        f"{spec.name}-pod-logs",
        {
            "region": spec.region,
            "cluster_name": eks.cluster_name,
            "cluster_arn": eks.cluster_arn,
            "retention_days": spec.data.log_retention_days,
        },
        on_both,
    )
    teams = {
        team.name: AwsAlertTopic(
            f"{spec.name}-{team_namespace(team.name)}-alerts", {"emails": team.alert_emails}, on_aws
        )
        for team in spec.teams
        if team.alert_emails
    }
    topics = [topic.topic_arn for topic in (platform, *teams.values())]
    role = AwsPodRole(
        f"{spec.name}-alerts-role",
        {
            "cluster_name": eks.cluster_name,
            "cluster_arn": eks.cluster_arn,
            "namespace": NAMESPACE,
            "service_account": ALERTMANAGER_ACCOUNT,
            "policy": pulumi.Output.all(*topics).apply(
                lambda known: iam.document(iam.allow(["sns:Publish"], sorted(known)))
            ),
        },
        on_aws,
    )
    return Alerting(
        platform=_receiver(spec.region, platform),
        teams={name: _receiver(spec.region, topic) for name, topic in teams.items()},
        from_log=False,
        ready=[role, logs],
    )


def _receiver(region: str, topic: AwsAlertTopic) -> Mapping[str, Any]:
    """Alertmanager signs with the credentials of the pod identity agent."""
    publish = {"topic_arn": topic.topic_arn, "sigv4": {"region": region}, "subject": _SUBJECT}
    return {"sns_configs": [{**publish, "send_resolved": True}]}
