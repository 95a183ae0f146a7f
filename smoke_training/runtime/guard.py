"""The last resort: a thread that acts when everything else has failed to end in time."""

import threading
import time
from collections.abc import Callable
from types import TracebackType


class LastResort:
    """Calls `act` on a thread of its own at `when` (monotonic seconds) unless the block has ended by then.

    For what no deadline inside the main thread can catch: a write to a file server that hangs, say.
    """

    def __init__(self, when: float, act: Callable[[], None]) -> None:
        self._when, self._act = when, act
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._wait, name="last resort", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()

    def _wait(self) -> None:
        # Event.wait measures by the monotonic clock; a long wait in pieces survives a suspended machine.
        while (left := self._when - time.monotonic()) > 0:
            if self._over.wait(min(left, 60.0)):
                return
        self._act()
