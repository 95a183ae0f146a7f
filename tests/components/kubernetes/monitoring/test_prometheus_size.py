"""The size of Prometheus, and what is left out of the series that grow most."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from components.kubernetes.monitoring import node_series, workload_metrics
from components.kubernetes.monitoring.chart_values import values
from infra.catalog.kubernetes import prometheus
from infra.catalog.kubernetes.prometheus import Nodes
from tests.components.kubernetes.monitoring.test_metric_names import METRIC, expressions

P5 = Nodes(count=1, cpus=192, gpus=8, devices=32)


def test_memory_grows_with_nodes_processors_gpus_and_devices() -> None:
    one = prometheus.series([P5], queues=5)
    assert prometheus.series([Nodes(100, 192, 8, 32)], 5) > 50 * (one - prometheus.series([], 5)) + one
    for smaller in (Nodes(1, 96, 8, 32), Nodes(1, 192, 4, 32), Nodes(1, 192, 8)):
        assert prometheus.series([smaller], 5) < one
    assert prometheus.memory_gib(one) < prometheus.memory_gib(prometheus.series([Nodes(200, 192, 8, 32)], 5))


@pytest.mark.parametrize(("nodes", "least", "most"), [(4, 2, 3), (100, 4, 10), (500, 15, 40)])
def test_a_stack_of_p5_nodes_gets_what_its_series_need(nodes: int, least: int, most: int) -> None:
    assert least <= prometheus.memory_gib(prometheus.series([Nodes(nodes, 192, 8, 32)], 8)) <= most


def test_the_limit_is_what_was_asked_for() -> None:
    made = values(retention_days=7, storage_gib=100, memory_gib=6, alertmanager={})
    resources = made["prometheus"]["prometheusSpec"]["resources"]
    assert resources["limits"] == {"memory": "6Gi"}
    assert resources["requests"]["memory"] == "3072Mi"


def test_many_teams_and_their_finished_workloads_need_more() -> None:
    assert prometheus.memory_gib(prometheus.series([P5], 5)) < prometheus.memory_gib(
        prometheus.series([P5], 60)
    )


def kept(labels: dict[str, str], rules: Sequence[Mapping[str, Any]]) -> dict[str, str] | None:
    """The labels of a sample after relabelings, as Prometheus applies them in order; None: it is dropped."""
    for rule in rules:
        text = ";".join(labels.get(name, "") for name in rule.get("sourceLabels", ()))
        if not re.fullmatch(rule["regex"], text) and rule.get("action") != "labeldrop":
            continue
        if rule.get("action") == "drop":
            return None
        if rule.get("action") == "labeldrop":
            labels = {name: value for name, value in labels.items() if not re.fullmatch(rule["regex"], name)}
        else:
            labels[rule["targetLabel"]] = rule["replacement"]
    return labels


def dropped(metric: str, mode: str = "") -> bool:
    """Return whether the relabelings of the node exporter drop a sample."""
    left = kept({"__name__": metric, "mode": mode}, node_series.relabelings())
    assert left is None or left.keys() <= {"__name__", "mode"}
    return left is None


def test_a_finished_workload_has_one_series_with_the_labels_of_before() -> None:
    (resource,) = workload_metrics.config()["spec"]["resources"]
    names = [f"{workload_metrics.PREFIX}_{metric['name']}" for metric in resource["metrics"]]
    state = set(resource["labelsFromPath"]) - {"namespace", "workload", "queue", "priority", "active"}
    (label,) = state
    rules = workload_metrics.relabelings()
    left = [kept({"__name__": name, label: "True"}, rules) for name in names]
    assert [one for one in left if one] == [{"__name__": "kueue_workload_finished_seconds"}]
    assert all(kept({"__name__": name}, rules) == {"__name__": name} for name in [*names, "kube_pod_info"])


def test_only_modes_that_nothing_reads_are_dropped() -> None:
    modes = ("idle", "iowait", "irq", "nice", "softirq", "steal", "system", "user")
    left = {mode for mode in modes if not dropped("node_cpu_seconds_total", mode)}
    assert left == set(prometheus.CPU_MODES)
    assert not dropped("node_load1")


def test_nothing_is_asked_of_what_is_switched_off() -> None:
    """A rule or a panel on such a metric would be dead."""
    off = re.compile(r"node_(cpu_guest_seconds|schedstat|softnet|cpu_(frequency|scaling))\w*")
    asked = {name for text in expressions() for name in re.findall(METRIC, text)}
    assert len(asked) > 50
    assert not {name for name in asked if off.fullmatch(name) or dropped(name)}
