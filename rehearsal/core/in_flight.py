"""Requests in progress: a request waits for a resource only while others may still create it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rehearsal.core.model import Call

_POLL_S = 0.05
T = TypeVar("T")


class InFlight:
    """Requests of all engines in progress, except those that wait for others."""

    def __init__(self) -> None:
        self._lock, self._working, self._ended = threading.Lock(), 0, time.monotonic()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count one request as in progress."""
        with self._lock:
            self._working += 1
        try:
            yield
        finally:
            with self._lock:
                self._working, self._ended = self._working - 1, time.monotonic()

    def wait(self, call: Call, missing: Callable[[], T | None], patience_s: float) -> T | None:
        """Wait until nothing is missing; returns what is missing once no other request ran for so long."""
        began = time.monotonic()
        while found := missing():
            last = max(began, self._quiet_since())
            if call.cancelled.wait(_POLL_S) or time.monotonic() > last + patience_s:
                return found
        return None

    def _quiet_since(self) -> float:
        """End of the last request; now, while one is in progress."""
        with self._lock:
            return time.monotonic() if self._working else self._ended
