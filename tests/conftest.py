"""Hooks of every test process: garbage collection, and the order of files."""

import atexit
import gc
import os
from collections.abc import Generator
from pathlib import Path

import pytest

# With the SDKs of clouds a process is large: at Python's own threshold, 700, tests that compose stacks spent
# a third of their processor time looking for garbage, at 50,000 still an eighth. A process grows by 60 MB.
_NEW_OBJECTS = 1_000_000
# Where files take minutes: a worker that begins one of them last is still busy when all others have ended.
_FIRST = ("cluster", "rehearsal", "faults", "stacks", "policies", "smoke_training", "examples")
_HERE = Path(__file__).parent
# As rehearsals set it for programs in processes of their own.
os.environ.setdefault("TRAINSTACK_IAM_DELAY_S", "0.5")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage rarely, and never in what was imported: it stays."""
    gc.disable()
    atexit.register(gc.freeze)  # nor once more at the end
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(_NEW_OBJECTS)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the folders whose files take longest; within a folder the order stays."""
    items.sort(key=lambda item: _place(item.path))


def _place(file: Path) -> int:
    folder = file.relative_to(_HERE).parts[0]
    return _FIRST.index(folder) if folder in _FIRST else len(_FIRST)
