"""What is being worked on now: whether something else may still bring what one request waits for."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rehearsal.core.model import Call

_POLL_S = 0.05
T = TypeVar("T")


class InFlight:
    """The requests of all engines that are being worked on; one that waits for others is not."""

    def __init__(self) -> None:
        self._lock, self._working, self._ended = threading.Lock(), 0, time.monotonic()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Work on one."""
        with self._lock:
            self._working += 1
        try:
            yield
        finally:
            with self._lock:
                self._working, self._ended = self._working - 1, time.monotonic()

    def wait(self, call: Call, missing: Callable[[], T | None], patience_s: float) -> T | None:
        """Wait until nothing is missing; what still is when all other requests have been over for so long."""
        began = time.monotonic()
        while found := missing():
            last = max(began, self._quiet_since())
            if call.cancelled.wait(_POLL_S) or time.monotonic() > last + patience_s:
                return found
        return None

    def _quiet_since(self) -> float:
        """When the last one ended; now, while one is worked on."""
        with self._lock:
            return time.monotonic() if self._working else self._ended
