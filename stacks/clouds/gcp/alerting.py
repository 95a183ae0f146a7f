"""Alerting on Google Cloud: e-mail on log lines of a pod (components/gcp/alerts)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from components.gcp.alerts.mailed import GcpMailedAlerts
from components.gcp.cluster.gke import GcpCluster
from components.kubernetes.monitoring.names import NAMESPACE
from components.kubernetes.monitoring.routes import PLATFORM
from components.kubernetes.monitoring.scrapes import GpuExporterArgs
from components.kubernetes.monitoring.stack import ALERT_LOG_URL
from infra.naming import team_namespace
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from stacks.parts import Alerting

# Namespace and pods of GKE's own GPU exporter, from three public projects; not documented by Google (read
# 2026-11-25). Untested in a real project.
_EXPORTER: GpuExporterArgs = {"namespace": "gke-managed-system", "name": "gke-managed-dcgm-exporter"}


def alerting_on_gcp(spec: StackSpec, on: GcpSpec, gke: GcpCluster, opts: pulumi.ResourceOptions) -> Alerting:
    """A policy for administrators, and one for each team with its own addresses."""
    receivers = {
        PLATFORM: spec.budget.alert_emails,
        **{team_namespace(team.name): team.alert_emails for team in spec.teams if team.alert_emails},
    }
    policies = [
        _mailed(spec, on, gke, opts, receiver=name, emails=emails) for name, emails in receivers.items()
    ]
    teams = [team.name for team in spec.teams if team.alert_emails]
    return Alerting(
        platform=_receiver(PLATFORM),
        teams={name: _receiver(team_namespace(name)) for name in teams},
        from_log=True,
        ready=policies,
        gpu_exporter=_EXPORTER,
    )


def _mailed(
    spec: StackSpec,
    on: GcpSpec,
    gke: GcpCluster,
    opts: pulumi.ResourceOptions,
    *,
    receiver: str,
    emails: Sequence[str],
) -> GcpMailedAlerts:
    return GcpMailedAlerts(
        f"{spec.name}-{receiver}-alerts",
        {
            "project": on.project,
            "cluster_name": gke.cluster_name,
            "namespace": NAMESPACE,
            "receiver": receiver,
            "emails": emails,
        },
        opts,
    )


def _receiver(name: str) -> Mapping[str, Any]:
    return {"webhook_configs": [{"url": f"{ALERT_LOG_URL}/{name}", "send_resolved": True}]}
