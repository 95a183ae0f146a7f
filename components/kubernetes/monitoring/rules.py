"""The alert rules as objects of the Prometheus operator, one for each file below `rules/`: a layer."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml

from components.kubernetes.monitoring.names import NAMESPACE
from components.runbooks import page

_RULES = resources.files("components.kubernetes.monitoring").joinpath("rules")


def layers() -> list[str]:
    """Names of the rule files: the four layers of a training stack, and of its dashboards."""
    return sorted(file.name.removesuffix(".yaml") for file in _RULES.iterdir() if file.name.endswith(".yaml"))


def groups(layer: str) -> list[dict[str, Any]]:
    """The rule groups of a layer in Prometheus' format; every alert with the path of its runbook page."""
    return [
        {**group, "rules": [_with_page(layer, rule) for rule in group["rules"]]} for group in _written(layer)
    ]


@cache
def _written(layer: str) -> list[dict[str, Any]]:
    text = _RULES.joinpath(f"{layer}.yaml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = yaml.safe_load(text)["groups"]
    return found


def _with_page(layer: str, rule: Mapping[str, Any]) -> dict[str, Any]:
    if "alert" not in rule:
        return dict(rule)
    return {**rule, "annotations": {**rule["annotations"], "runbook_url": page(layer, rule["alert"])}}


def objects() -> Iterator[dict[str, Any]]:
    """The PrometheusRules."""
    for layer in layers():
        yield {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": f"trainstack-{layer}", "namespace": NAMESPACE},
            "spec": {"groups": groups(layer)},
        }
