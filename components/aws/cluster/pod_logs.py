"""Logs of pods and nodes, kept after these are gone: Fluent Bit on every node, a CloudWatch log group."""

from typing import TypedDict

import pulumi

from components.aws import iam
from components.aws.account import current_account
from components.aws.encryption import encryption_key
from components.aws.logs import log_group, logs_may_use
from components.aws.pod_role import AwsPodRole
from components.base import Component, Options
from components.kubernetes.charts import charts, release
from components.ordering import after

CHART = "aws-for-fluent-bit"
# On every node, whatever its taints: logs of a failing GPU node matter most.
_TOLERATIONS = [{"operator": "Exists"}]
# Logs of the kernel (XID errors of GPUs among them), the kubelet and containerd; pods are the chart's input.
_JOURNAL = """\
[INPUT]
    Name              systemd
    Tag               node.*
    Path              /var/log/journal
    DB                /var/log/flb_journal.db
    Systemd_Filter    _SYSTEMD_UNIT=kubelet.service
    Systemd_Filter    _SYSTEMD_UNIT=containerd.service
    Systemd_Filter    _TRANSPORT=kernel
    Read_From_Tail    On
    Strip_Underscores On
"""
# A stream for each container; records of the journal have no pod, and go to streams of their node and unit.
_STREAM = "$kubernetes['namespace_name'].$kubernetes['pod_name'].$kubernetes['container_name']"


class AwsPodLogsArgs(TypedDict):
    """Arguments of `AwsPodLogs`."""

    region: str
    """The provider's region."""
    cluster_name: pulumi.Input[str]
    """The EKS cluster."""
    cluster_arn: pulumi.Input[str]
    """ARN of the cluster."""
    retention_days: int
    """Days for which logs are kept."""


class AwsPodLogs(Component):
    """Fluent Bit, with the permission to write to one encrypted log group and to create none.

    Needs an AWS and a Kubernetes provider (`providers=[aws, kubernetes]`). CloudWatch Logs bills ingestion by
    the gigabyte: a job that prints its tensors costs money. Untested in a real account.
    """

    log_group_name: pulumi.Output[str]
    """The log group; logs go there once it is known."""

    def __init__(self, name: str, args: AwsPodLogsArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        called = f"/trainstack/{name}"
        key = encryption_key(
            self,
            f"{name}-key",
            account=current_account(self),
            purpose=f"Logs of pods and nodes: {called}",
            statements=logs_may_use(args["region"], called),
        )
        group = log_group(
            self,
            f"{name}-group",
            log_group_name=called,
            retention_days=args["retention_days"],
            key_arn=key.arn,
        )
        role = AwsPodRole(
            f"{name}-pods",
            {
                "cluster_name": args["cluster_name"],
                "cluster_arn": args["cluster_arn"],
                "namespace": charts()[CHART].namespace,
                "service_account": CHART,
                "policy": group.arn.apply(_write_to),
            },
            self.child(),
        )
        values = {
            "cloudWatchLogs": {
                "enabled": True,
                "region": args["region"],
                "logGroupName": called,
                "logStreamPrefix": "node-",
                "logStreamTemplate": _STREAM,
                # After a destroy it must not create the group again, unencrypted and without retention.
                "autoCreateGroup": False,
            },
            "additionalInputs": _JOURNAL,
            "serviceAccount": {"create": True, "name": CHART},
            "tolerations": _TOLERATIONS,
        }
        installed = release(
            f"{name}-{CHART}", CHART, values, self.child(pulumi.ResourceOptions(depends_on=[role, group]))
        )
        self.log_group_name = after(group.name, [installed])
        self.register_declared()


def _write_to(group_arn: str) -> str:
    return iam.document(
        iam.allow(
            ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"],
            [group_arn, f"{group_arn}:*"],
        )
    )
