"""Examples of rules about ComputeClasses of GKE."""

from typing import Any

from rehearsal.core.model import Properties
from rehearsal.kubernetes.rules.objects.compute_classes import COMPUTE_CLASS
from tests.rehearsal.kubernetes.rules.building import Example, named


def compute_class(**spec: Any) -> Properties:
    policy = {"consolidationDelayMinutes": 1440, "gpuConsolidationThreshold": 0}
    return named("default", spec={"autoscalingPolicy": policy, "whenUnsatisfiable": "ScaleUpAnyway", **spec})


EXAMPLES = [
    Example(
        "K8S-GKE-004",
        COMPUTE_CLASS,
        compute_class(priorities=[{"nodepools": ["l4"]}]),
        {"spec.autoscalingPolicy.consolidationDelayMinutes": 1441},
        "spec.autoscalingPolicy.consolidationDelayMinutes",
    ),
    Example(
        "K8S-GKE-005", COMPUTE_CLASS, compute_class(), {"metadata.name": "autopilot-l4"}, "metadata.name"
    ),
]
