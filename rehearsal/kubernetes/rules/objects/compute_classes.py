"""ComputeClasses of GKE (cloud.google.com/v1): the part that a stack without automatic node pools uses."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules.accessors import name
from rehearsal.kubernetes.rules.book import BOOK
from rehearsal.kubernetes.rules.objects import schema
from rehearsal.kubernetes.rules.violations import invalid

COMPUTE_CLASS = "kubernetes:cloud.google.com/v1:ComputeClass"
_PERCENT: Final = {"type": "integer", "minimum": 0, "maximum": 100}
_MINUTES: Final = {"type": "integer", "minimum": 1, "maximum": 1440}
_OBJECT: Final = {"type": "object"}
_SCHEMA: Final[Mapping[str, Any]] = {
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["whenUnsatisfiable"],
            "properties": {
                "activeMigration": _OBJECT,
                "allocationStrategyDefaults": _OBJECT,
                "autopilot": _OBJECT,
                "autoscalingPolicy": {
                    "type": "object",
                    "properties": {
                        "consolidationDelayMinutes": _MINUTES,
                        "consolidationThreshold": _PERCENT,
                        "gpuConsolidationThreshold": _PERCENT,
                    },
                },
                "description": {"type": "string"},
                "minimumCapacity": _OBJECT,
                "nodePoolAutoCreation": {
                    "type": "object",
                    "required": ["enabled"],
                    "properties": {
                        "dynamicBootDiskSize": {"type": "boolean"},
                        "dynamicMaxPodsPerNode": {"type": "boolean"},
                        "enabled": {"type": "boolean", "default": False},
                        "shieldedInstanceConfig": _OBJECT,
                    },
                },
                "nodePoolConfig": _OBJECT,
                "nodePoolGroup": _OBJECT,
                "priorities": {"type": "array"},
                "priorityDefaults": _OBJECT,
                "whenUnsatisfiable": {
                    "type": "string",
                    "enum": ["ScaleUpAnyway", "DoNotScaleUp"],
                    "default": "DoNotScaleUp",
                },
            },
        }
    },
}


@BOOK.rule(
    "K8S-GKE-004",
    COMPUTE_CLASS,
    source="GoogleCloudPlatform/compute-class-api@8067eaeb cloud.google.com_computeclasses.yaml",
)
def _fits(inputs: Properties) -> Iterator[Violation]:
    """A class fits the definition that GKE installs; fields of automatic node pools are not checked."""
    yield from schema.misfits(_SCHEMA, inputs)


@BOOK.rule(
    "K8S-GKE-005", COMPUTE_CLASS, source="GKE documentation, About custom ComputeClasses (limitations)"
)
def _named(inputs: Properties) -> Iterator[Violation]:
    """Names of GKE's own classes are not taken."""
    own = name(inputs)
    if own and own.startswith(("gke", "autopilot")):
        yield invalid("metadata.name", own, "must not begin with gke or autopilot")
