"""Import of the engine's protocol messages without the rest of the Pulumi SDK."""

import importlib.util
import sys
import types
from pathlib import Path


def leave_out_sdk() -> None:
    """Make `pulumi.runtime.proto` importable without the rest of the SDK, which takes 0.4 s to import.

    Only the messages of the engine's protocol are needed here, and their package runs the whole SDK's
    `__init__` when imported the plain way.
    """
    found = importlib.util.find_spec("pulumi")
    if found is None or found.submodule_search_locations is None:
        raise ImportError("the Pulumi SDK is not installed")
    folder = Path(found.submodule_search_locations[0])
    for name, path in (("pulumi", folder), ("pulumi.runtime", folder / "runtime")):
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
