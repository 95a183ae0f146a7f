"""Records of measurements: one module per family, written by `line_of` and read by `parse` (pure)."""

from smoke_training.evidence import fabric, gpus, links, liveness, state, storage, training, world
from smoke_training.evidence.registry import (
    KINDS,
    Evidence,
    Record,
    UndeliveredError,
    document_of,
    kind,
    kind_of,
    line_of,
    parse,
)

__all__ = [
    "KINDS",
    "Evidence",
    "Record",
    "UndeliveredError",
    "document_of",
    "fabric",
    "gpus",
    "kind",
    "kind_of",
    "line_of",
    "links",
    "liveness",
    "parse",
    "state",
    "storage",
    "training",
    "world",
]
