"""The size of Prometheus, and what is left out of the series that grow most."""

import re

import pytest

from components.kubernetes.monitoring import node_series, sizing
from components.kubernetes.monitoring.chart_values import values
from components.kubernetes.monitoring.sizing import Nodes
from tests.components.kubernetes.monitoring.test_metric_names import METRIC, expressions

P5 = Nodes(count=1, cpus=192, gpus=8, devices=32)


def test_memory_grows_with_nodes_processors_gpus_and_devices() -> None:
    one = sizing.series([P5], queues=5)
    assert sizing.series([Nodes(100, 192, 8, 32)], 5) > 50 * (one - sizing.series([], 5)) + one
    for smaller in (Nodes(1, 96, 8, 32), Nodes(1, 192, 4, 32), Nodes(1, 192, 8)):
        assert sizing.series([smaller], 5) < one
    assert sizing.memory_gib(one) < sizing.memory_gib(sizing.series([Nodes(200, 192, 8, 32)], 5))


@pytest.mark.parametrize(("nodes", "least", "most"), [(4, 2, 3), (100, 4, 10), (500, 15, 40)])
def test_a_stack_of_p5_nodes_gets_what_its_series_need(nodes: int, least: int, most: int) -> None:
    assert least <= sizing.memory_gib(sizing.series([Nodes(nodes, 192, 8, 32)], 8)) <= most


def test_the_limit_is_what_was_asked_for() -> None:
    made = values(retention_days=7, storage_gib=100, memory_gib=6, alertmanager={})
    resources = made["prometheus"]["prometheusSpec"]["resources"]
    assert resources["limits"] == {"memory": "6Gi"}
    assert resources["requests"]["memory"] == "3072Mi"


def dropped(metric: str, mode: str = "") -> bool:
    """Whether the relabelings of the node exporter drop a sample, as Prometheus applies them in order."""
    labels = {"__name__": metric, "mode": mode}
    for rule in node_series.relabelings():
        text = ";".join(labels.get(name, "") for name in rule.get("sourceLabels", ()))
        if not re.fullmatch(rule["regex"], text) and rule.get("action") != "labeldrop":
            continue
        if rule.get("action") == "drop":
            return True
        if rule.get("action") == "labeldrop":
            labels = {name: value for name, value in labels.items() if not re.fullmatch(rule["regex"], name)}
        else:
            labels[rule["targetLabel"]] = rule["replacement"]
    assert labels.keys() <= {"__name__", "mode"}
    return False


def test_only_modes_that_nothing_reads_are_dropped() -> None:
    modes = ("idle", "iowait", "irq", "nice", "softirq", "steal", "system", "user")
    kept = {mode for mode in modes if not dropped("node_cpu_seconds_total", mode)}
    assert kept == set(sizing.CPU_MODES)
    assert not dropped("node_load1")


def test_nothing_is_asked_of_what_is_switched_off() -> None:
    """A rule or a panel on such a metric would be dead."""
    off = re.compile(r"node_(cpu_guest_seconds|schedstat|softnet|cpu_(frequency|scaling))\w*")
    asked = {name for text in expressions() for name in re.findall(METRIC, text)}
    assert len(asked) > 50
    assert not {name for name in asked if off.fullmatch(name) or dropped(name)}
