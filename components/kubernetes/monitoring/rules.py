"""The alert rules as objects of the Prometheus operator, one for each file below `rules/`: a layer.

The files are rules of Prometheus with `${...}` for two things that PromQL cannot express once: `${xid:page}`,
`${xid:known}` are codes of `xid.py`, and `${grown:SELECTOR|WINDOW}` is `grown`.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

import yaml

from components.kubernetes.monitoring import xid
from components.kubernetes.monitoring.names import NAMESPACE
from components.runbooks import ROOT, page

_RULES = resources.files("components.kubernetes.monitoring").joinpath("rules")
ELSEWHERE: Final[Mapping[str, frozenset[str]]] = {
    # It has no tracking server, whose absence is an alert.
    "manager": frozenset({"MlflowDown"}),
    # Copies of the manager's jobs wait, end and cost here a second time; teams hear it from the manager.
    "worker": frozenset(
        {
            "QueueWaitAboveTwoHours",
            "QueueWaitAboveTarget",
            "HighPriorityWaitAboveTarget",
            "JobFailureRateHigh",
            "CostSpike",
        }
    ),
}
"""Alerts that a cluster does not raise, by its place among several: `manager` or `worker`."""
_SLOT = re.compile(r"\$\{(\w+):([^{}|]*(?:\{[^}]*\})?)(?:\|(\w+))?\}")


def layers() -> list[str]:
    """Names of the rule files: the four layers of a training stack, and of its dashboards."""
    return sorted(file.name.removesuffix(".yaml") for file in _RULES.iterdir() if file.name.endswith(".yaml"))


def groups(layer: str, runbooks: str = ROOT) -> list[dict[str, Any]]:
    """The rule groups of a layer in Prometheus' format; every alert with its page below `runbooks`."""
    return [
        {**group, "rules": [_with_page(layer, rule, runbooks) for rule in group["rules"]]}
        for group in _written(layer)
    ]


def grown(selector: str, window: str) -> str:
    """Growth of counters within a window, each with its labels: `increase`, and what new series begin with.

    `increase` does not count the first sample of a series, such as the first eviction of a queue, or the
    first one after another replica became the leader. That sample counts where the series is new: there was
    none in the day before the window (so a gap in the scrapes makes no series new), and the job was scraped
    before (so the first day of Prometheus does not count the whole life of a process).
    """
    (job,) = re.findall(r'job="([^"]+)"', selector)
    parts = {
        "increase": f"increase({selector}[{window}])",
        "new": f"(min_over_time({selector}[{window}]) unless last_over_time({selector}[1d] offset {window}))"
        f' and on (job) last_over_time(up{{job="{job}"}}[1d] offset {window})',
    }
    return " or ".join(f'label_replace({one}, "part", "{name}", "", "")' for name, one in parts.items())


@cache
def _written(layer: str) -> list[dict[str, Any]]:
    text = _RULES.joinpath(f"{layer}.yaml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = yaml.load(text, Loader=yaml.CSafeLoader)["groups"]
    return [{**group, "rules": [_filled(rule) for rule in group["rules"]]} for group in found]


def _filled(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {**rule, "expr": _SLOT.sub(lambda slot: _slot(slot[1], slot[2], slot[3]), rule["expr"])}


def _slot(kind: str, given: str, window: str | None) -> str:
    if kind == "xid":
        known = {"page": [xid.Urgency.PAGE], "known": [xid.Urgency.PAGE, xid.Urgency.IGNORE]}
        return xid.expression(*known[given])
    assert kind == "grown" and window, f"${{{kind}:{given}}}"
    return grown(given, window)


def _with_page(layer: str, rule: Mapping[str, Any], runbooks: str) -> dict[str, Any]:
    if "alert" not in rule:
        return dict(rule)
    return {
        **rule,
        "annotations": {**rule["annotations"], "runbook_url": page(layer, rule["alert"], runbooks)},
    }


def objects(runbooks: str = ROOT, without: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """The PrometheusRules, `without` some alerts."""
    for layer in layers():
        yield {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": f"trainstack-{layer}", "namespace": NAMESPACE},
            "spec": {
                "groups": [
                    {**one, "rules": [rule for rule in one["rules"] if rule.get("alert") not in without]}
                    for one in groups(layer, runbooks)
                ]
            },
        }
