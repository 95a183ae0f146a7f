"""Import large packages without garbage collection of their objects.

Importing torch triggers several collections, each of a probe's collections scans its objects again, and so
does the end of the process: together 30 % of the processor time of `import torch._dynamo`.
"""

import atexit
import gc
import importlib
from typing import Any

atexit.register(gc.freeze)


def large(name: str) -> Any:
    """Import the module of this name; its objects are exempt from collection."""
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()
