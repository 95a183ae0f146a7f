"""Mail alert about idle GPUs of nodes that always exist."""

from collections.abc import Sequence
from typing import TypedDict

import pulumi

from components.base import Component, Options
from components.gcp.alerts.policies import PolicyArgs, channels_of, mail_policy
from components.ordering import after

IDLE_PERCENT = 10
"""Average use of a cluster's GPUs below which an alert is sent: one of eight nodes at work is above it."""
IDLE_HOURS = 12
"""Period of the average: a night without a run is reported in the morning."""


class GcpIdleAlertArgs(TypedDict):
    """The cluster, and the addresses of the alert."""

    cluster_name: pulumi.Input[str]
    """Cluster with GKE's DCGM metrics (`DCGM` in its monitoring) and managed Prometheus."""
    emails: Sequence[str]
    """Addresses that get the alert, one to sixteen."""


class GcpIdleAlert(Component):
    """Mail when the GPUs of a cluster are idle, for pools whose nodes no autoscaler removes.

    A reservation is billed whether its nodes are used or not, so its pool keeps some; the budget does not
    show their use. The alert is about all GPUs of the cluster together, so it is one mail and not one for
    each GPU. A cluster without a GPU node has no such metric, and no alert.

    The metric is that of NVIDIA's DCGM, which GKE collects from every GPU, also where no pod has one.
    Untested in a real project.
    """

    policy: pulumi.Output[str]
    """`projects/<project>/alertPolicies/<number>`"""

    def __init__(self, name: str, args: GcpIdleAlertArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        asked: PolicyArgs = {
            "title": f"{name}: paid GPUs are idle",
            "condition": {
                "display_name": f"GPUs were used less than {IDLE_PERCENT} % for {IDLE_HOURS} hours",
                "condition_prometheus_query_language": {
                    "query": pulumi.Output.from_input(args["cluster_name"]).apply(idle),
                    "duration": "3600s",
                    "evaluation_interval": "600s",
                    # There is none until the first node with GPUs reports.
                    "disable_metric_validation": True,
                },
            },
            "documentation": DOCUMENTATION,
        }
        made = mail_policy(self, name, asked, channels_of(self, name, args["emails"], f"{name}.emails"))
        self.policy = after(made.id, [made])
        self.register_declared()


def idle(cluster: str) -> str:
    """PromQL with a value while a cluster's GPUs are idle (GKE documentation, "Collect DCGM metrics")."""
    used = f'avg_over_time(DCGM_FI_DEV_GPU_UTIL{{cluster="{cluster}"}}[{IDLE_HOURS}h])'
    return f"avg({used}) < {IDLE_PERCENT}"


DOCUMENTATION = """\
Nodes with GPUs of this cluster run all the time and were hardly used.

`trainstack status` shows what runs. Start waiting work, lower `min_nodes` of the pool, or cancel the
reservation.
"""
