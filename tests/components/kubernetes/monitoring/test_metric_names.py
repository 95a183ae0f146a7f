"""Names of metrics in rules and dashboards are those that exporters have."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.kubernetes import gpu_metrics
from components.kubernetes.monitoring import rules, workload_metrics
from components.kubernetes.monitoring.dashboards import dashboards
from infra.engine.golang import TOOLS, SetupError, go
from rehearsal.controlplane.binaries import FILES

# A Go declaration of a metric has its name in a line of its own.
_NAME = re.compile(r'^\t\t\tName: +"(\w+)",$', re.M)
_EXPORTED = "kube|kueue|kubelet|DCGM|container|node|prometheus|trainstack|alertmanager"
METRIC = rf"(?<![\w:=~|\x22])((?:{_EXPORTED})_\w+|up)\b"
"""A metric of an exporter in an expression; not a label, and not a record of ours (`trainstack:...`)."""
_OF_HISTOGRAMS = re.compile(r"_(bucket|sum|count)$")


def expressions() -> Iterator[str]:
    for layer in rules.layers():
        for group in rules.groups(layer):
            yield from (rule["expr"] for rule in group["rules"])
    for dashboard in dashboards():
        for panel in dashboard.panels:
            yield from (query["expr"] for query in panel.queries)


def used(prefix: str) -> set[str]:
    """The metrics of an exporter that something asks for."""
    return {name for text in expressions() for name in re.findall(rf"\b{prefix}\w+", text)}


def test_kueue_has_every_metric_that_is_asked_of_it() -> None:
    kueue = FILES["kueue"]
    try:
        source = Path(go(TOOLS / kueue.folder, "list", "-m", "-f", "{{.Dir}}", kueue.module).strip())
    except SetupError:
        source = Path()
    if not (source / "pkg").is_dir():
        pytest.skip("the source of Kueue is not here: `make binaries` fetches it, and says why it cannot")
    has = {f"kueue_{name}" for name in _NAME.findall((source / "pkg/metrics/metrics.go").read_text())}
    asked = {
        _OF_HISTOGRAMS.sub("", name) for name in used("kueue_") if not name.startswith("kueue_workload_")
    }
    assert len(asked) >= 8
    assert asked <= has


def test_workloads_have_every_metric_that_is_asked_of_them() -> None:
    (resource,) = workload_metrics.config()["spec"]["resources"]
    has = {f"{workload_metrics.PREFIX}_{metric['name']}" for metric in resource["metrics"]}
    assert used("kueue_workload_") == has


def test_the_exporter_of_gpus_has_every_queried_field() -> None:
    assert used("DCGM_") <= {field for field, _, _ in gpu_metrics.FIELDS}


def test_a_list_of_fields_is_what_the_exporter_reads() -> None:
    """Three parts in a line, of which the last has no comma (internal/pkg/counters, `csv.Reader`)."""
    for line in gpu_metrics.csv().splitlines():
        _, kind, about = line.split(", ")
        assert kind in ("gauge", "counter")
        assert "," not in about and "#" not in line
