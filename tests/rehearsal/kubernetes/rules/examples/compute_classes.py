"""Examples of rules about ComputeClasses of GKE."""

from rehearsal.kubernetes.rules.objects.compute_classes import COMPUTE_CLASS
from tests.rehearsal.kubernetes.rules.building import Example, named

EXAMPLES = [
    Example(
        "K8S-GKE-004",
        COMPUTE_CLASS,
        named("default", spec={"whenUnsatisfiable": "ScaleUpAnyway"}),
        {"metadata.name": "autopilot-l4"},
        "metadata.name",
    ),
]
