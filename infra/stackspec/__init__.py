"""The spec of a stack: typed, merged from layers, checked, with the origin of each value."""

from infra.stackspec.load import (
    NAMESPACE,
    SETTINGS,
    LoadedSpec,
    Provenance,
    load,
    load_deployed,
    load_file,
    load_typed,
)
from infra.stackspec.stack import StackSpec

__all__ = [
    "NAMESPACE",
    "SETTINGS",
    "LoadedSpec",
    "Provenance",
    "StackSpec",
    "load",
    "load_deployed",
    "load_file",
    "load_typed",
]
