"""Call a Cloud Run function with one event: `bootstrap.py ENTRY EVENT`, started in the folder of its source.

Source: Functions Framework for Python (cloud_event marks the function that is called with a CloudEvent; what
its source imports is built into the image). Only the standard library: a function brings its own.
"""

import importlib
import importlib.util
import json
import sys
import types
from pathlib import Path


def main(entry: str, event: str) -> None:
    """Call the function; its exception ends the process."""
    own = Path(__file__).resolve().parent  # modules of the rehearsal must not be imported
    sys.path[:] = [str(Path.cwd()), *(one for one in sys.path if Path(one or ".").resolve() != own)]
    if importlib.util.find_spec("functions_framework") is None:
        framework = types.ModuleType("functions_framework")
        framework.cloud_event = lambda function: function  # type: ignore[attr-defined]
        sys.modules["functions_framework"] = framework
    data = json.loads(Path(event).read_text())
    getattr(importlib.import_module("main"), entry)(types.SimpleNamespace(data=data))


if __name__ == "__main__":
    main(*sys.argv[1:])
