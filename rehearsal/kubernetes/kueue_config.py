"""Configuration of Kueue in a cluster."""

from collections.abc import Iterable, Mapping
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from rehearsal.core.model import Record
from rehearsal.kubernetes.charts import ChartFacts


def configuration(releases: Iterable[tuple[Record, ChartFacts | None]]) -> Mapping[str, Any] | None:
    """Configuration of the controller (config.kueue.x-k8s.io/v1beta2), None without Kueue.

    The chart has it as text in `managerConfig.controllerManagerConfigYaml`.
    """
    for record, chart in releases:
        if chart and chart.name == "kueue":
            manager = (record.inputs.get("values") or {}).get("managerConfig") or {}
            text = str(manager.get("controllerManagerConfigYaml") or "{}")
            found: Mapping[str, Any] = YAML(typ="safe").load(StringIO(text)) or {}
            return found
    return None
