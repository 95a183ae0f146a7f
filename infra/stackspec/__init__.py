"""What a user may say about a stack: typed, folded from layers, checked, able to say where it came from."""

from infra.stackspec.load import NAMESPACE, SETTINGS, LoadedSpec, Provenance, load, load_file
from infra.stackspec.stack import StackSpec

__all__ = ["NAMESPACE", "SETTINGS", "LoadedSpec", "Provenance", "StackSpec", "load", "load_file"]
