"""Metrics of Kueue's Workloads that Kueue itself does not export: waiting times, ends and their reasons.

kube-state-metrics derives them from the objects (`customResourceState` of its chart; the format is that
of kube-state-metrics v2.20, pkg/customresourcestate). At most six series a Workload, and one once it is
finished, until it is deleted. A time is in seconds since 1970.
"""

from collections.abc import Mapping
from typing import Any

PREFIX = "kueue_workload"
_CONDITIONS = ["status", "conditions"]
_FINISHED, _FINISHED_LABEL = "finished_seconds", "workload_finished"


def config() -> Mapping[str, Any]:
    """The metrics: creation, changes of the conditions that a wait begins or ends with, end, and requeues."""
    return {
        "kind": "CustomResourceStateMetrics",
        "spec": {
            "resources": [
                {
                    "groupVersionKind": {"group": "kueue.x-k8s.io", "version": "v1beta2", "kind": "Workload"},
                    "metricNamePrefix": PREFIX,
                    # A condition that does not exist yet is no error.
                    "errorLogV": 5,
                    "labelsFromPath": {
                        "namespace": ["metadata", "namespace"],
                        "workload": ["metadata", "name"],
                        "queue": ["spec", "queueName"],
                        "priority": ["spec", "priorityClassRef", "name"],
                        "active": ["spec", "active"],
                        _FINISHED_LABEL: [*_CONDITIONS, "[type=Finished]", "status"],
                    },
                    "metrics": [
                        _gauge(
                            "created_seconds",
                            "When the Workload was created.",
                            {"path": ["metadata", "creationTimestamp"]},
                        ),
                        _gauge(
                            "admitted_changed_seconds",
                            "When the condition Admitted last changed to what `admitted` says.",
                            _condition("Admitted", {"admitted": ["status"]}),
                        ),
                        _gauge(
                            "quota_reserved_changed_seconds",
                            "When the condition QuotaReserved last changed to what `reserved` says.",
                            _condition("QuotaReserved", {"reserved": ["status"]}),
                        ),
                        # Kueue's own measure of a wait begins there (kueue v0.19.2 pkg/workload/workload.go,
                        # `QueuedWaitTime`): after an eviction, and after a deactivation.
                        _gauge(
                            "requeued_changed_seconds",
                            "When the condition Requeued last changed to what `requeued` says.",
                            _condition("Requeued", {"requeued": ["status"]}),
                        ),
                        _gauge(
                            "requeues",
                            "How often it was queued again because its pods were not ready in time.",
                            {"path": ["status", "requeueState", "count"]},
                        ),
                        _gauge(
                            _FINISHED,
                            "When the Workload ended, with the reason.",
                            _condition("Finished", {"reason": ["reason"]}),
                        ),
                    ],
                }
            ]
        },
    }


def _condition(kind: str, labels: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "path": [*_CONDITIONS, f"[type={kind}]"],
        "labelsFromPath": dict(labels),
        "valueFrom": ["lastTransitionTime"],
    }


def _gauge(name: str, help_text: str, gauge: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"name": name, "help": help_text, "each": {"type": "Gauge", "gauge": dict(gauge)}}


def relabelings() -> list[Mapping[str, Any]]:
    """Keep one series of a finished Workload: Kueue keeps these for a week, and a team may have thousands."""
    names = [metric["name"] for metric in config()["spec"]["resources"][0]["metrics"]]
    dropped = "|".join(name for name in names if name != _FINISHED)
    return [
        {
            "sourceLabels": ["__name__", _FINISHED_LABEL],
            "separator": ";",
            "regex": f"{PREFIX}_({dropped});True",
            "action": "drop",
        },
        {"regex": _FINISHED_LABEL, "action": "labeldrop"},
    ]


def rights() -> list[Mapping[str, Any]]:
    """Permissions of kube-state-metrics for them; the chart adds the right to list kinds."""
    return [{"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": ["list", "watch"]}]
