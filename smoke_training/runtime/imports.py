"""Imports of large packages without looking for garbage in what stays.

While torch is imported Python would look several times, then at each collection that a probe asks for, and
once more when the process ends: together 30 % of the processor time of `import torch._dynamo`.
"""

import atexit
import gc
import importlib
from typing import Any

atexit.register(gc.freeze)


def large(name: str) -> Any:
    """The module of this name, whose objects no collection looks at."""
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()
