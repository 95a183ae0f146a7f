"""Scrape targets besides the chart's own: controllers of the platform, GPUs, programs of ours."""

from collections.abc import Iterator
from typing import Any, TypedDict

from components.kubernetes.charts import charts
from components.kubernetes.monitoring.names import NAMESPACE, PROGRAM_NAMESPACES

_API = "monitoring.coreos.com/v1"
_NAME = "app.kubernetes.io/name"
_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a path
# The port of each controller's metrics Service, by chart; a test compares it with the rendered charts.
CONTROLLERS = {"kueue": "https", "jobset": "https", "kubeflow-trainer": "monitoring-port"}
# Label of the pods of every long-running program of ours (`components/kubernetes/programs/deployment.py`).
OURS = {"app.kubernetes.io/part-of": "trainstack"}
# Series of one target, above which Prometheus drops the scrape (alert `ScrapeRefused`): the ledger has some
# for each project of a team, an exporter of GPUs 15 for each of at most 16 GPUs or 112 parts of GPUs, a
# controller some hundred for each queue.
_MOST_SERIES = {"programs": 50_000, "gpus": 5_000, "controllers": 50_000}


class GpuExporterArgs(TypedDict):
    """The pods that export the metrics of GPUs, at their port `metrics`."""

    namespace: str
    """Namespace of the pods."""
    name: str
    """Value of their label `app.kubernetes.io/name`."""


def own_exporter() -> GpuExporterArgs:
    """The exporter of our own chart."""
    return {"namespace": charts()["dcgm-exporter"].namespace, "name": "dcgm-exporter"}


def objects(exporter: GpuExporterArgs | None) -> Iterator[dict[str, Any]]:
    """The ServiceMonitors and PodMonitors; `exporter` is None where there are no GPUs."""
    for chart, port in CONTROLLERS.items():
        yield _controller(chart, port)
    # A pod of a team may carry the label, too: only namespaces of the platform are read.
    where = {"matchNames": list(PROGRAM_NAMESPACES)}
    yield _monitor("PodMonitor", "programs", where, OURS, _pods({"port": "metrics"}, _name_as_job()))
    if exporter is not None:
        # The exporter names the pod that holds a GPU; without honorLabels its own pod would replace it.
        endpoint = {"port": "metrics", "honorLabels": True, "relabelings": [_job("dcgm-exporter"), *_node()]}
        where = {"matchNames": [exporter["namespace"]]}
        yield _monitor("PodMonitor", "gpus", where, {_NAME: exporter["name"]}, _pods(endpoint))


def _controller(chart: str, port: str) -> dict[str, Any]:
    """A controller serves accounts that may `get /metrics`, as Prometheus' own role may (clusterrole.yaml).

    Its certificate is self-signed at its start.
    """
    endpoint = {
        "port": port,
        "scheme": "https",
        "bearerTokenFile": _TOKEN,
        "tlsConfig": {"insecureSkipVerify": True},
        "relabelings": [_job(chart)],
    }
    where = {"matchNames": [charts()[chart].namespace]}
    return _monitor("ServiceMonitor", chart, where, {_NAME: chart}, {"endpoints": [endpoint]})


def _monitor(
    kind: str, name: str, where: dict[str, Any], labels: dict[str, str], rest: dict[str, Any]
) -> dict[str, Any]:
    return {
        "apiVersion": _API,
        "kind": kind,
        "metadata": {"name": f"trainstack-{name}", "namespace": NAMESPACE},
        "spec": {
            "namespaceSelector": where,
            "selector": {"matchLabels": labels},
            "sampleLimit": _MOST_SERIES.get(name, _MOST_SERIES["controllers"]),
            **rest,
        },
    }


def _pods(endpoint: dict[str, Any], *relabelings: dict[str, Any]) -> dict[str, Any]:
    extra = {"relabelings": list(relabelings)} if relabelings else {}
    return {"podMetricsEndpoints": [{**endpoint, **extra}]}


def _job(name: str) -> dict[str, Any]:
    return {"targetLabel": "job", "replacement": name}


def _name_as_job() -> dict[str, Any]:
    return {"sourceLabels": ["__meta_kubernetes_pod_label_app_kubernetes_io_name"], "targetLabel": "job"}


def _node() -> list[dict[str, Any]]:
    # The exporter's own label was renamed from Hostname to hostname after 4.8.2.
    return [{"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}]
