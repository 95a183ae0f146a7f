"""What a run measured: one module per family of records, all read through `parse` (pure)."""

from smoke_training.evidence import baseline, fabric, links, liveness, state, storage, system, training, world
from smoke_training.evidence.registry import KINDS, Evidence, kind, kind_of, parse

__all__ = [
    "KINDS",
    "Evidence",
    "baseline",
    "fabric",
    "kind",
    "kind_of",
    "links",
    "liveness",
    "parse",
    "state",
    "storage",
    "system",
    "training",
    "world",
]
