"""Dashboards of Grafana, built from the short form below `dashboards/`: one for each layer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

_FOLDER = resources.files("components.kubernetes.monitoring").joinpath("dashboards")
# Grafana's grid has 24 columns. Panels of one figure stand four in a row, the others two.
_COLUMNS, _STAT, _GRAPH = 24, (6, 5), (12, 8)
_SOURCE = {"type": "prometheus", "uid": "prometheus"}  # as the chart calls it

# Names of clusters; several or all of them can be chosen.
_CLUSTER = {
    "name": "cluster",
    "label": "Cluster",
    "type": "query",
    "datasource": _SOURCE,
    "query": {
        "query": 'label_values(trainstack_cluster_lost{job="dispatcher"}, cluster)',
        "refId": "cluster",
    },
    "refresh": 2,  # at each change of the time range
    "sort": 1,
    "multi": True,
    "includeAll": True,
    "current": {"text": ["All"], "value": ["$__all"]},
}


@dataclass(frozen=True)
class Panel:
    """One query to Prometheus, or several that belong together."""

    title: str
    unit: str
    """Grafana's name of the unit."""
    queries: Sequence[Mapping[str, str]]
    """Each with `expr` (PromQL) and `legend`."""
    kind: str = "timeseries"
    """`timeseries`, or `stat` for the current value."""
    target: float | None = None
    """The target, in the unit."""
    better: str = "less"
    """The good side of the target: `less` or `more`."""
    description: str = ""


@dataclass(frozen=True)
class Dashboard:
    """The panels of a layer."""

    layer: str
    title: str
    panels: Sequence[Panel]
    several: bool = False
    """Of several clusters: its queries have the variable `$cluster`, names of clusters as a pattern."""


@cache
def dashboards() -> list[Dashboard]:
    """All dashboards, by the name of their file: of each layer, and of several clusters."""
    files = sorted(
        (file for file in _FOLDER.iterdir() if file.name.endswith(".yaml")), key=lambda file: file.name
    )
    return [_read(file.name.removesuffix(".yaml"), file.read_text(encoding="utf-8")) for file in files]


def _read(layer: str, text: str) -> Dashboard:
    row = yaml.safe_load(text)
    return Dashboard(
        layer, row["title"], [Panel(**panel) for panel in row["panels"]], several=row.get("several", False)
    )


def grafana_json(dashboard: Dashboard) -> str:
    """The dashboard as a file of Grafana 13."""
    return json.dumps(
        {
            "uid": f"trainstack-{dashboard.layer}",
            "title": dashboard.title,
            "tags": ["trainstack"],
            "schemaVersion": 39,
            "editable": False,
            "refresh": "1m",
            "time": {"from": "now-1d", "to": "now"},
            "templating": {"list": [_CLUSTER] if dashboard.several else []},
            "panels": _placed(dashboard.panels),
        },
        indent=1,
    )


def _placed(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """The panels from left to right, each row as high as its panels."""
    placed: list[dict[str, Any]] = []
    x = y = height = 0
    for number, panel in enumerate(panels, 1):
        width, own = _STAT if panel.kind == "stat" else _GRAPH
        if x + width > _COLUMNS or (height and own != height):
            x, y = 0, y + height
        placed.append(_panel(number, panel, {"x": x, "y": y, "w": width, "h": own}))
        x, height = x + width, own
    return placed


def _panel(number: int, panel: Panel, place: Mapping[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "title": panel.title,
        "description": panel.description,
        "type": panel.kind,
        "gridPos": dict(place),
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, **_thresholds(panel)}, "overrides": []},
        "options": {"colorMode": "value"} if panel.kind == "stat" else {"legend": {"displayMode": "table"}},
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": _SOURCE,
                "expr": query["expr"],
                "legendFormat": query["legend"],
            }
            for at, query in enumerate(panel.queries)
        ],
    }


def _thresholds(panel: Panel) -> dict[str, Any]:
    """Green on the good side of the target, and in graphs a line at it."""
    if panel.target is None:
        return {}
    below, above = ("green", "red") if panel.better == "less" else ("red", "green")
    steps = [{"color": below, "value": None}, {"color": above, "value": panel.target}]
    line = {} if panel.kind == "stat" else {"custom": {"thresholdsStyle": {"mode": "line"}}}
    return {"thresholds": {"mode": "absolute", "steps": steps}, **line}
