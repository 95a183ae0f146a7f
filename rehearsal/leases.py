"""Leases of the daemon: it ends when idle, and accepts no request once it has decided to."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Long enough for the next command of a script, short enough not to seem left behind.
_IDLE_S = 2.0


class Leases:
    """Engines that hold leases, by number of their connection, and requests in progress."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engines: dict[int, int] = {}  # lease -> process of the engine
        self._answering = 0
        self._ending = False
        self._idle_since = time.monotonic()

    def engines(self) -> int:
        """Number of engines; each leases several servers."""
        with self._lock:
            return len(set(self._engines.values()))

    def give(self, lease: int, engine: int) -> None:
        """Keep the daemon running until `take_back`."""
        with self._lock:
            self._engines[lease] = engine

    def take_back(self, lease: int) -> None:
        """Drop the lease of a closed connection; one without a lease does not reset the idle time."""
        with self._lock:
            if self._engines.pop(lease, None) is not None:
                self._idle_since = time.monotonic()

    @contextmanager
    def answering(self) -> Iterator[bool]:
        """Keep the daemon running meanwhile; yields False when it is ending already."""
        with self._lock:
            in_time = not self._ending
            self._answering += in_time
        try:
            yield in_time
        finally:
            with self._lock:
                self._answering -= in_time

    def end_if_idle(self, works: Callable[[], bool]) -> bool:
        """End when nothing was leased for a while and `works` returns False."""
        with self._lock:
            if self._used() or time.monotonic() - self._idle_since < _IDLE_S:
                return False
        at_work = works()
        with self._lock:
            if at_work:  # `works` reads the whole state: call it again only after the idle time
                self._idle_since = time.monotonic()
            elif not self._used():
                self._ending = True
            return self._ending

    def end(self) -> None:
        """End regardless of leases."""
        with self._lock:
            self._ending = True

    def _used(self) -> bool:
        return bool(self._engines or self._answering)
