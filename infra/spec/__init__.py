"""What a user may say about a stack: typed, merged with defaults, checked, able to say where it came from."""

from infra.spec.load import NAMESPACE, SETTINGS, LoadedSpec, Provenance, load, load_file
from infra.spec.stack import StackSpec

__all__ = ["NAMESPACE", "SETTINGS", "LoadedSpec", "Provenance", "StackSpec", "load", "load_file"]
