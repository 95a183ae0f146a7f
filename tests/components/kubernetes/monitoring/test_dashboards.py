"""Every panel shows something: its queries are asked of a real Prometheus with samples of every exporter."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.kubernetes.monitoring import rules
from components.kubernetes.monitoring.dashboards import Dashboard, Panel, dashboards, grafana_json
from tests.components.kubernetes.monitoring.prometheus import Asked, run, running

QUERIES = [
    # Grafana puts the chosen clusters in, as a pattern.
    pytest.param(query["expr"].replace("$cluster", "usw2|use1"), id=f"{dashboard.layer}: {panel.title}")
    for dashboard in dashboards()
    for panel in dashboard.panels
    for query in panel.queries
]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with running(tmp_path_factory.mktemp("prometheus")) as asked:
        yield asked


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_has_an_answer(prometheus: Asked, query: str) -> None:
    found = prometheus.answer(query)
    assert found
    assert all(row["value"][1] != "NaN" for row in found)


def test_what_no_exporter_has_answers_nothing(prometheus: Asked) -> None:
    assert prometheus.answer("kueue_no_such_metric") == []


def test_the_rules_see_what_the_samples_hold(prometheus: Asked) -> None:
    (waits,) = prometheus.answer('trainstack:workload_waiting:seconds{priority="production"}')
    assert waits["metric"]["team"] == "vision"
    assert float(waits["value"][1]) == pytest.approx(600, abs=60)
    firing = {row["metric"]["alertname"] for row in prometheus.answer('ALERTS{alertstate="firing"}')}
    assert {"Watchdog", "GpuXidError", "BudgetHalfUsed"} <= firing
    assert not {"GpuUtilizationLow", "VolumeFillingUp", "KueueDown", "MlflowDown"} & firing


def test_there_is_a_dashboard_for_each_layer_with_the_targets_that_people_were_promised() -> None:
    found = {dashboard.layer: dashboard for dashboard in dashboards() if not dashboard.several}
    assert sorted(found) == rules.layers()
    targets = {panel.target for dashboard in found.values() for panel in dashboard.panels}
    assert {1800, 300, 0.05, 0.7, 0.8, 0.995} <= targets


def test_a_dashboard_is_what_grafana_reads(tmp_path: Path) -> None:
    for dashboard in dashboards():
        read = json.loads(grafana_json(dashboard))
        assert read["uid"] == f"trainstack-{dashboard.layer}"
        for panel in read["panels"]:
            assert panel["datasource"]["uid"] == "prometheus"
            for target in panel["targets"]:
                run("promtool", "promql", "--experimental", "format", target["expr"], cwd=tmp_path)


def test_clusters_are_chosen_from_those_of_the_manager() -> None:
    (dashboard,) = (one for one in dashboards() if one.several)
    (variable,) = json.loads(grafana_json(dashboard))["templating"]["list"]
    assert variable["name"] == "cluster" and variable["multi"] and variable["includeAll"]
    assert variable["datasource"]["uid"] == "prometheus" and "trainstack_cluster_lost" in str(variable)
    expressions = [query["expr"] for panel in dashboard.panels for query in panel.queries]
    assert sum("$cluster" in one for one in expressions) > len(expressions) / 2


def test_panels_do_not_overlap_and_fill_rows() -> None:
    taken: set[tuple[int, int]] = set()
    dashboard = Dashboard(
        "x",
        "X",
        [
            *(Panel(f"figure {number}", "s", [], kind="stat") for number in range(5)),
            *(Panel(f"graph {number}", "s", []) for number in range(3)),
        ],
    )
    for panel in json.loads(grafana_json(dashboard))["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells


def test_green_is_on_the_good_side_of_a_target() -> None:
    wait, busy = Panel("wait", "s", [], target=300), Panel("busy", "s", [], target=0.8, better="more")
    first, second = json.loads(grafana_json(Dashboard("x", "X", [wait, busy])))["panels"]
    assert [step["color"] for step in first["fieldConfig"]["defaults"]["thresholds"]["steps"]] == [
        "green",
        "red",
    ]
    assert [step["color"] for step in second["fieldConfig"]["defaults"]["thresholds"]["steps"]] == [
        "red",
        "green",
    ]
