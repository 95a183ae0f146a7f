"""Alarms and one dashboard of a Slurm system in CloudWatch, and the right of its nodes to publish figures."""

import json
from collections.abc import Sequence
from typing import Final, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.base import Component, Options
from infra.slurm.figures import FIGURES, SlurmAlarm, namespace

_PERIOD_S: Final = 300
_MINUTES: Final = _PERIOD_S // 60
_PAST: Final = {"above": "GreaterThanThreshold", "below": "LessThanThreshold"}
_PAGE: Final = "docs/how-to/slurm/aws.md, Alarms"
# A dashboard is 24 units wide (CloudWatch API Reference, Dashboard Body Structure and Syntax).
_WIDTH, _HEIGHT = 12, 6


class AwsSlurmMonitoringArgs(TypedDict):
    """Alarms, their topic and the publisher."""

    region: str
    """Region of the provider in use."""
    stack: str
    """Name of the stack."""
    alarms: Sequence[SlurmAlarm]
    """The alarms."""
    topic_arn: pulumi.Input[str]
    """A topic that CloudWatch may publish to: not one under AWS's own key."""
    role_name: pulumi.Input[str]
    """Role of the nodes."""


class AwsSlurmMonitoring(Component):
    """Alarms on figures that the login node publishes each minute, and a dashboard of them.

    The right to publish is that of all nodes, for one namespace: jobs cannot use their role. *Untested in a
    real account.*
    """

    dashboard_name: pulumi.Output[str]
    """Name of the dashboard."""
    alarm_arns: pulumi.Output[Sequence[str]]
    """ARNs of all alarms."""

    def __init__(self, name: str, args: AwsSlurmMonitoringArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        space = namespace(args["stack"])
        only = {"StringEquals": {"cloudwatch:namespace": space}}
        aws.iam.RolePolicy(
            f"{name}-figures",
            role=args["role_name"],
            # The action has no resource types (Service Authorization Reference, Amazon CloudWatch).
            policy=iam.document({**iam.allow(["cloudwatch:PutMetricData"], ["*"]), "Condition": only}),
            opts=self.child(),
        )
        alarms = [self._alarm(name, args, space, one) for one in args["alarms"]]
        board = aws.cloudwatch.Dashboard(
            f"{name}-dashboard",
            dashboard_name=f"trainstack-{args['stack']}",
            dashboard_body=_body(args["region"], space),
            opts=self.child(),
        )
        self.dashboard_name = board.dashboard_name
        self.alarm_arns = pulumi.Output.all(*(one.arn for one in alarms))
        self.register_declared()

    def _alarm(
        self, name: str, args: AwsSlurmMonitoringArgs, space: str, one: SlurmAlarm
    ) -> aws.cloudwatch.MetricAlarm:
        return aws.cloudwatch.MetricAlarm(
            f"{name}-{one.name}",
            alarm_description=f"{one.text} What to do first: {_PAGE}",
            namespace=space,
            metric_name=one.metric,
            # The best value of each period: a restart of some minutes is no alarm.
            statistic="Maximum" if one.past == "below" else "Minimum",
            period=_PERIOD_S,
            evaluation_periods=max(1, one.minutes // _MINUTES),
            comparison_operator=_PAST[one.past],
            threshold=one.threshold,
            treat_missing_data=one.without_data,
            alarm_actions=[args["topic_arn"]],
            ok_actions=[args["topic_arn"]],
            opts=self.child(),
        )


def _body(region: str, space: str) -> str:
    widgets = [
        {
            "type": "metric",
            "x": _WIDTH * (index % 2),
            "y": _HEIGHT * (index // 2),
            "width": _WIDTH,
            "height": _HEIGHT,
            "properties": {
                "title": title,
                "region": region,
                "view": "timeSeries",
                "stat": "Maximum",
                "period": 60,
                "metrics": [[space, metric] for metric in metrics],
            },
        }
        for index, (title, metrics) in enumerate(FIGURES)
    ]
    return json.dumps({"widgets": widgets})
