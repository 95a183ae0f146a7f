"""Waiting for a state of the cluster."""

import time
from collections.abc import Callable
from typing import Any


def eventually(
    check: Callable[[], Any], what: str | Callable[[], object] = "it", patience_s: float = 30.0
) -> Any:
    """What `check` says once it says something; fails with what was waited for."""
    deadline = time.monotonic() + patience_s
    while not (found := check()):
        if time.monotonic() > deadline:
            said = what if isinstance(what, str) else what()
            raise AssertionError(f"did not happen in {patience_s:.0f} s: {said}")
        time.sleep(0.1)
    return found
