"""The one process that emulates the clouds of a rehearsal: `python -m rehearsal.daemon HOME`.

It starts on demand and ends by itself once no engine is connected and no workload runs. `control` says how to
talk to it.
"""

import importlib
import importlib.util
import logging
import os
import sys
import time
import types
from pathlib import Path

from rehearsal import control


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


def main() -> None:
    """Run until idle or told to stop."""
    home = Path(sys.argv[1])
    home.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(message)s"
    )
    # The one before may still be closing its files.
    with control.exclusive(home / "daemon.lock", time.monotonic() + 10):
        leave_out_sdk()
        os.umask(0o077)
        importlib.import_module("rehearsal.core.server").Server(home).run()


if __name__ == "__main__":
    main()
