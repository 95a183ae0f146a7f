"""Names and addresses of the parts of monitoring in a cluster."""

NAMESPACE = "monitoring"
# The chart kube-prometheus-stack names its own objects after `fullnameOverride`, so the Services are
# monitoring-prometheus and monitoring-alertmanager, and the accounts, too.
FULL_NAME = "monitoring"
PROMETHEUS_PORT = 9090
PROMETHEUS_URL = f"http://{FULL_NAME}-prometheus.{NAMESPACE}.svc.cluster.local:{PROMETHEUS_PORT}"
"""URL of Prometheus for programs of the platform; their namespace needs the label `QUERIES_LABEL`."""
ALERTMANAGER_ACCOUNT = f"{FULL_NAME}-alertmanager"
"""Service account of the pods that send alerts."""
GRAFANA, GRAFANA_PORT = "grafana", 3000
LOGIN = "grafana-login"
"""Secret with Grafana's one user: `username` and `password`."""
PROGRAM_NAMESPACES = (
    "trainstack-accounting",
    "trainstack-idle",
    "trainstack-capacity",
    "trainstack-dispatch",
    NAMESPACE,
)
"""Namespaces of the long-running programs that serve metrics."""
# Pods of namespaces with this label may query Prometheus.
QUERIES_LABEL = "trainstack.dev/queries"
