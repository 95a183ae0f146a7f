"""Values of the chart kube-prometheus-stack (88.5.3, with its charts of Grafana and kube-state-metrics)."""

from collections.abc import Mapping, Sequence
from typing import Any

from components.kubernetes.monitoring import node_series, rdma_counters, receivers, workload_metrics
from components.kubernetes.monitoring.names import FULL_NAME, GRAFANA, LOGIN, NAMESPACE

# Share of the volume for blocks of Prometheus; its write-ahead log needs the rest.
_BLOCKS = 0.8
# Alertmanager stores silences and sent notifications.
_ALERTMANAGER_GIB = 2
# Namespaces whose Deployments and Jobs the chart's own alerts watch. Not those of teams: their jobs may run
# for days, fail, and wait, which are faults for the chart's rules.
_WATCHED = "kube-system|kueue-system|jobset-system|kubeflow-system|mlflow|trainstack-.*|monitoring"
# Objects of other namespaces configure neither Prometheus nor Alertmanager, also where a member may create
# them: monitors, probes, scrapes, rules, receivers. The node exporter's monitor is in kube-system.
_OURS = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [NAMESPACE, "kube-system"]}
    ]
}
_SELECTED = ("rule", "serviceMonitor", "podMonitor", "probe", "scrapeConfig")
# Groups about parts that only the cloud sees: a managed control plane cannot be scraped.
_UNSEEN = (
    "etcd",
    "kubeControllerManager",
    "kubeProxy",
    "kubeSchedulerAlerting",
    "kubeSchedulerRecording",
    "kubeApiserverAvailability",
    "kubeApiserverBurnrate",
    "kubeApiserverHistogram",
    "kubeApiserverSlos",
    "windows",
)
# The first two fire on states that are no faults here; the others need an autoscaler, or are ours.
_DISABLED = (
    "KubeJobNotCompleted",
    "KubeJobFailed",
    "KubeCPUOvercommit",
    "KubeMemoryOvercommit",
    "InfoInhibitor",
    "Watchdog",
)
_SCRAPED_NOT = ("kubeApiServer", "kubeControllerManager", "kubeScheduler", "kubeEtcd", "kubeProxy")
# Requests: measured figures and their sources are in docs/explanation/monitoring.md.
_PROMETHEUS_CPU = "200m"
_GRAFANA = {"requests": {"cpu": "50m", "memory": "192Mi"}, "limits": {"memory": "512Mi"}}
_SIDECAR = {"requests": {"cpu": "10m", "memory": "80Mi"}, "limits": {"memory": "160Mi"}}
_SMALL = {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
_STATE = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}


def values(
    *,
    retention_days: int,
    storage_gib: int,
    memory_gib: int,
    alertmanager: Mapping[str, Any],
    rdma: bool = False,
    pages: bool = False,
) -> dict[str, Any]:
    """The values. `alertmanager` is its configuration; it contains no secret, or the state would.

    `memory_gib`: memory limit of Prometheus (infra/catalog/kubernetes/prometheus.py).
    `rdma`: nodes have devices whose counters the node exporter must read.
    `pages`: Alertmanager reads credentials of receivers (`receivers.volume`).
    """
    return {
        "fullnameOverride": FULL_NAME,
        "cleanPrometheusOperatorObjectNames": True,
        "defaultRules": {
            "appNamespacesTarget": _WATCHED,
            "rules": dict.fromkeys(_UNSEEN, False),
            "disabled": dict.fromkeys(_DISABLED, True),
        },
        **{name: {"enabled": False} for name in _SCRAPED_NOT},
        "coreDns": {"enabled": False},
        # Its webhook would check rules; ours are checked before the deployment, and a webhook that is down
        # stops every deployment.
        "prometheusOperator": {
            "admissionWebhooks": {"enabled": False},
            "tls": {"enabled": False},
            "resources": _SMALL,
        },
        "prometheus": {"prometheusSpec": _prometheus(retention_days, storage_gib, memory_gib)},
        "alertmanager": {
            "config": alertmanager,
            "alertmanagerSpec": {
                "resources": _SMALL,
                "storage": {"volumeClaimTemplate": _claim(_ALERTMANAGER_GIB)},
                "alertmanagerConfigNamespaceSelector": _OURS,
                **(receivers.volume() if pages else {}),
            },
        },
        "grafana": _grafana(),
        "kube-state-metrics": _state_metrics(),
        # It needs the node's own network and processes, which the namespace of the others denies.
        "prometheus-node-exporter": {
            "fullnameOverride": "node-exporter",
            "namespaceOverride": "kube-system",
            "extraArgs": [*node_series.ARGUMENTS, *(rdma_counters.ARGUMENTS if rdma else ())],
            "prometheus": {"monitor": {"metricRelabelings": node_series.relabelings()}},
            **(rdma_counters.values() if rdma else {}),
        },
    }


def _prometheus(retention_days: int, storage_gib: int, memory_gib: int) -> dict[str, Any]:
    return {
        "retention": f"{retention_days}d",
        "retentionSize": f"{max(1, int(storage_gib * _BLOCKS))}GiB",
        # Half is the usual need: the rest is for queries, and for reading the log at a start.
        "resources": {
            "requests": {"cpu": _PROMETHEUS_CPU, "memory": f"{memory_gib * 512}Mi"},
            "limits": {"memory": f"{memory_gib}Gi"},
        },
        "storageSpec": {"volumeClaimTemplate": _claim(storage_gib)},
        **{f"{kind}NamespaceSelector": _OURS for kind in _SELECTED},
        # All rules and monitors of these namespaces; else only those that carry the release's name.
        "ruleSelectorNilUsesHelmValues": False,
        "serviceMonitorSelectorNilUsesHelmValues": False,
        "podMonitorSelectorNilUsesHelmValues": False,
    }


def _claim(gib: int) -> dict[str, Any]:
    return {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": f"{gib}Gi"}}}}


def _grafana() -> dict[str, Any]:
    """One user with a login created in the cluster; dashboards come from ConfigMaps of the namespace."""
    sidecar = {"enabled": True, "searchNamespace": NAMESPACE}
    return {
        "fullnameOverride": GRAFANA,
        "admin": {"existingSecret": LOGIN, "userKey": "username", "passwordKey": "password"},
        # Runs as root to change the owner of a volume; Grafana has none, because dashboards are code.
        "initChownData": {"enabled": False},
        "defaultDashboardsEnabled": False,
        # The sidecars would read all Secrets and ConfigMaps of the cluster.
        "rbac": {"namespaced": True},
        "sidecar": {"resources": _SIDECAR, "dashboards": dict(sidecar), "datasources": dict(sidecar)},
        "resources": _GRAFANA,
        "testFramework": {"enabled": False},
        "grafana.ini": {
            "analytics": {"check_for_updates": False, "reporting_enabled": False},
            "auth.anonymous": {"enabled": False},
            "users": {"allow_sign_up": False},
        },
    }


def _state_metrics() -> dict[str, Any]:
    return {
        "fullnameOverride": "kube-state-metrics",
        "resources": _STATE,
        # These are not used, so it need not read them.
        "collectorsExclude": ["certificatesigningrequests", "configmaps", "secrets"],
        "metricLabelsAllowlist": _labels(
            nodes=("trainstack.dev/pool", "topology.kubernetes.io/zone"),
            pods=("kueue.x-k8s.io/cluster-queue-name", "kueue.x-k8s.io/local-queue-name"),
        ),
        "customResourceState": {"enabled": True, "config": workload_metrics.config()},
        "rbac": {"extraRules": workload_metrics.rights()},
        "prometheus": {"monitor": {"http": {"metricRelabelings": workload_metrics.relabelings()}}},
    }


def _labels(**kinds: Sequence[str]) -> list[str]:
    return [f"{kind}=[{','.join(labels)}]" for kind, labels in kinds.items()]
