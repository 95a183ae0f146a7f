"""What every process of tests shares."""

import gc
from collections.abc import Generator

import pytest

# With the SDKs of clouds a process is large: at Python's own threshold, 700, tests that compose stacks spent
# a third of their processor time looking for garbage.
_NEW_OBJECTS = 50_000


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage rarely, and never in what was imported: it stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(_NEW_OBJECTS)
        gc.enable()
